import { expect, test } from "vitest";
import { manifest, run } from "./run.ts";

const ARGS = ["decide", "cgroups", "--node", manifest("node.yaml"), "--config", manifest("config.yaml")];
const decide = (pods: unknown) =>
  run([...ARGS, "--cgroup-version", "1", "-o", "json", "--pods", "-"], { input: JSON.stringify(pods) });

test("a PodList with items null, as Go writes it, is an empty list; without a kind it is refused", async () => {
  const empty = await decide({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [] });
  expect(empty).toMatchObject({ code: 0, stderr: "" });
  expect(await decide({ kind: "PodList", apiVersion: "v1", metadata: {}, items: null })).toEqual(empty);
  expect(await decide({ kind: "List", apiVersion: "v1", items: null })).toEqual(empty);
  expect((await decide({ items: null })).code).toBe(2);
});
