import { expect, test, vi } from "vitest";
import * as z from "zod";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { serving } from "./serving.ts";

vi.mock("zod", async (original) => {
  const zod = await original<typeof z>();
  return { ...zod, compile: vi.fn(zod.compile) };
});

test("the snapshot schema is compiled before the server listens, not during the first answer", async () => {
  const { api } = await serving();
  expect(z.compile).toHaveBeenCalledOnce();
  const line = JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot("n1") });
  const response = await fetch(`${api.url}/v1/batch`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson" },
    body: `${line}\n`.repeat(3),
  });
  const answers = (await response.text()).trim().split("\n");
  expect(answers.map((text) => JSON.parse(text).verdict)).toEqual(["decided", "decided", "decided"]);
  expect(z.compile).toHaveBeenCalledOnce();
});
