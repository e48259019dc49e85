import { request } from "node:http";
import { expect, test } from "vitest";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { appOver, serving } from "./serving.ts";

const line = (sequence: number): string =>
  `${JSON.stringify({ kind: "cgroups", snapshot: exampleSnapshot("n1", { sequence }), explain: "off" })}\n`;

test("a batch is answered line by line, before the caller sends the next line", async () => {
  const { api } = await serving();
  const posting = request(`${api.url}/v1/batch`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson" },
  });
  const numbers: number[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    posting.on("error", reject);
    posting.on("response", (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
          numbers.push((JSON.parse(text.slice(0, end)) as { line: number }).line);
          text = text.slice(end + 1);
          if (numbers.length < 3) posting.write(line(numbers.length + 1));
          else posting.end();
        }
      });
      response.on("end", resolve);
    });
  });
  posting.write(line(1));
  await ended;
  expect(numbers).toEqual([1, 2, 3]);
});

test("a batch is logged when its last answer was sent, with its whole duration", async () => {
  const { api, log } = await serving();
  const reportOf = () => log.lines.filter(({ fields }) => fields["path"] === "/v1/batch");
  const posting = request(`${api.url}/v1/batch`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson" },
  });
  const before: number[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    posting.on("error", reject);
    posting.on("response", (response) => {
      response.once("data", () => {
        before.push(reportOf().length);
        posting.end(line(2));
      });
      response.on("data", () => {}).on("end", resolve);
    });
  });
  posting.write(line(1));
  await ended;
  expect(before).toEqual([0]);
  expect(reportOf()).toMatchObject([{ fields: { status: 200, ms: expect.any(Number) }, message: "request" }]);
});

test("other requests have their turn while a batch of quick decisions is answered", async () => {
  const { app } = appOver();
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const headers = { "content-type": "application/x-ndjson" };
  const posted = new Request("http://localhost/v1/batch", { method: "POST", body: "x\n".repeat(960), headers });
  const answers = (await (await app.fetch(posted)).text()).trimEnd().split("\n");
  isOver = true;
  expect(answers).toHaveLength(960);
  expect(turns).toBeGreaterThanOrEqual(50);
});

test("a caller that hangs up in the middle of a batch frees its place for others", async () => {
  const { api, log } = await serving({ limits: { concurrency: 1 } });
  for (let i = 0; i < 3; i++) {
    await new Promise<void>((resolve) => {
      const posting = request(`${api.url}/v1/batch`, {
        method: "POST",
        headers: { "content-type": "application/x-ndjson" },
      });
      posting.on("error", () => resolve());
      posting.on("response", (response) => {
        response.on("error", () => {});
        response.once("data", () => {
          posting.destroy();
          resolve();
        });
      });
      posting.write(line(i));
    });
    let status = 429;
    while (status === 429) status = (await fetch(`${api.url}/v1/nodes`)).status;
    expect(status).toBe(200);
  }
  expect(log.lines.filter((entry) => entry.level === "error")).toEqual([]);
});
