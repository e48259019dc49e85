import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { ApiClient } from "../../actuator/client/client.ts";
import { decideLocally } from "../../actuator/client/local-client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { Problem } from "../../actuator/core/interfaces.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { many } from "../kit/snapshots.ts";
import { answered, snapshot } from "./answered.ts";
import { scratch } from "./manifests/scratch.ts";

vi.setConfig({ testTimeout: 60_000 });

async function serving(handle: (request: IncomingMessage, body: string, response: ServerResponse) => void) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    handle(request, body, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
function clientFor(url: string, timeoutMs = 5000) {
  const dir = scratch({});
  const problems: Problem[] = [];
  const outbox = Outbox.open(join(dir, "outbox.jsonl"));
  const memory = new FactsStore(dir, (message) => problems.push({ from: "memory", message }));
  const client = new ApiClient({ url, token: undefined, timeoutMs, fetch }, outbox, memory, (p) => problems.push(p));
  return { client, outbox, problems, takeMessages: () => problems.splice(0).map(({ message }) => message) };
}
const REPORT = { at: "2026-11-21T00:00:00Z", dryRun: false, complete: true, results: [{ status: "applied" }] };
const json = (response: ServerResponse, status: number, value: unknown): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

test.each<readonly [string, string, string, RegExp]>([
  ["HTML", "text/html", "<html>sign in</html>", /answered 200 with no JSON object \(text\/html\): is this the API\?/],
  ["a list", "application/json", "[]", /answered 200 with no JSON object/],
  ["nothing", "application/json", "", /answered 200 with no JSON object/],
  ["another object", "application/json", "{}", /answered what is no decision of this node: id: /],
])(
  "an API that answers %s is reported, the daemon decides itself and keeps the decision in the outbox",
  async (_what, type, text, pattern) => {
    const url = await serving(
      (_request, _body, response) => void response.writeHead(200, { "content-type": type }).end(text),
    );
    const world = clientFor(url);
    const answer = await world.client.decide("cgroups", snapshot);
    if (!answer.ok) throw new Error(answer.error.message);
    expect(answer.value.decidedBy).toBe("here");
    expect(world.takeMessages()).toEqual([expect.stringMatching(pattern)]);
    expect(world.client.fault).toEqual({ from: "api", message: expect.stringMatching(pattern) });
    await world.client.report(REPORT, answer.value);
    expect(world.outbox.size).toBe(1);
    // an answer does not prove that the server is the API: no outbox entry is dropped
    for (let i = 0; i < 8; i++) await world.client.decide("cgroups", snapshot);
    expect(world.outbox.size).toBe(1);
  },
);

test("an overlong answer is not read to its end, and the daemon decides itself", async () => {
  const MOST = 3 * 2 ** 20;
  let sent = 0;
  const url = await serving((_request, _body, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const chunk = Buffer.alloc(2 ** 16, " ");
    const more = (): void => {
      while (!response.destroyed && sent < 30 * 2 ** 20) {
        sent += chunk.length;
        if (!response.write(chunk)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  const { client, takeMessages, outbox } = clientFor(url);
  const answer = await client.decide("cgroups", snapshot);
  if (!answer.ok) throw new Error(answer.error.message);
  expect(answer.value.decidedBy).toBe("here");
  expect(takeMessages()).toEqual([
    expect.stringMatching(/answered 200 with more than \d+ bytes, which no answer to this has: is this/),
  ]);
  // bytes that are in transit in sockets are added
  expect(sent).toBeLessThan(MOST + 12 * 2 ** 20);
  await client.report(REPORT, answer.value);
  expect(outbox.size).toBe(1);
});

test("the answer for a node full of minimal pods is not too long", async () => {
  const containers = many(16, (i) => container(`c${i}`, { cpu: "1m" }));
  const pods = many(64, (i) => pod(`p${i}`, { metadata: { uid: `u${i}` }, spec: { containers } }));
  const lean = { ...snapshot, pods };
  const url = await serving((_request, _body, response) => {
    const decided = decideLocally("cgroups", lean);
    json(response, 200, decided.ok ? { ...decided.value, id: "0123456789abcdef0123456789abcdef" } : {});
  });
  const { client, takeMessages } = clientFor(url);
  const answer = await client.decide("cgroups", lean);
  expect(takeMessages()).toEqual([]);
  expect(answer.ok && answer.value.decidedBy).toBe("api");
});

test("an outbox entry that a ready API never answers holds the others back for a limited time only", async () => {
  const sent: string[] = [];
  let isReady = false;
  const url = await serving((request, body, response) => {
    if (request.url === "/readyz") return json(response, isReady ? 200 : 503, { status: isReady ? "ready" : "no" });
    const { snapshot: posted } = JSON.parse(body) as { snapshot?: { observedAt: string } };
    sent.push(posted?.observedAt ?? "results");
    if (posted?.observedAt === "2026-01-01T00:00:00Z") return json(response, 500, { code: "internal" });
    json(response, 200, request.url === "/v1/results" ? {} : answered("cgroups"));
  });
  const { client, outbox, takeMessages } = clientFor(url);
  for (const day of [1, 2])
    outbox.add({ kind: "cgroups", snapshot: { ...snapshot, observedAt: `2026-01-0${day}T00:00:00Z` }, report: REPORT });
  // an API whose history fails answers every request with 500: no outbox entry is lost
  for (let i = 0; i < 12; i++) await client.decide("cgroups", snapshot);
  expect(outbox.size).toBe(2);
  takeMessages();
  isReady = true;
  for (let i = 0; i < 5 && outbox.size === 2; i++) await client.decide("cgroups", snapshot);
  expect(outbox.size).toBe(0);
  expect(takeMessages().filter((text) => text.startsWith("a decision made earlier is not taken: "))).toHaveLength(1);
  expect(sent).toContain("2026-01-02T00:00:00Z");
});

test("an API that hangs is waited for once, and not asked again for a while", async () => {
  let requests = 0;
  const url = await serving(() => void requests++);
  const { client, outbox, takeMessages } = clientFor(url, 2000);
  for (let i = 0; i < 20; i++) {
    const answer = await client.decide("cgroups", { ...snapshot, observedAt: new Date(i).toISOString() });
    expect(answer.ok && answer.value.decidedBy).toBe("here");
    if (answer.ok) await client.report(REPORT, answer.value);
  }
  expect(requests).toBeLessThan(6);
  expect(outbox.size).toBe(20);
  expect(takeMessages()[0]).toMatch(/does not answer \(TimeoutError\): deciding here$/);
  expect(client.fault?.message).toMatch(/TimeoutError/);
});

/**
 * An API without turns that is unreachable until `isAway` is false, and that records the paths of the requests it gets.
 */
async function comingBack() {
  const api = { isAway: true, sent: [] as string[] };
  const url = await serving((request, _body, response) => {
    if (api.isAway) return void request.socket.destroy();
    if (request.url?.endsWith("/turns")) return json(response, 404, { code: "not_found" });
    api.sent.push(request.url ?? "");
    json(response, 200, request.url === "/v1/results" ? {} : answered("cgroups"));
  });
  return { api, ...clientFor(url) };
}

test("a decision made by the daemon is in the outbox before it is applied, and sent once with results", async () => {
  const { api, client, outbox } = await comingBack();
  const answer = await client.decide("cgroups", snapshot);
  if (!answer.ok) throw new Error(answer.error.message);
  await client.commit(answer.value);
  expect(outbox.first()).toMatchObject({ kind: "cgroups", report: null });
  await client.report(REPORT, answer.value);
  expect(outbox.size).toBe(1);
  api.isAway = false;
  await client.decide("cgroups", { ...snapshot, observedAt: "2026-01-03T00:00:00Z" });
  expect(outbox.size).toBe(0);
  expect(api.sent).toEqual(["/v1/decisions/cgroups", "/v1/results", "/v1/decisions/cgroups"]);
});

test("a decision that found nothing to do is sent later too, marked as such", async () => {
  const { api, client, outbox } = await comingBack();
  const answer = await client.decide("eviction", snapshot);
  if (!answer.ok) throw new Error(answer.error.message);
  await client.commit(answer.value, false);
  expect(outbox.size).toBe(1);
  api.isAway = false;
  await client.decide("cgroups", { ...snapshot, observedAt: "2026-01-03T00:00:00Z" });
  expect(outbox.size).toBe(0);
  expect(api.sent).toEqual(["/v1/decisions/eviction", "/v1/decisions/cgroups"]);
});

test("results are sent even if their decision was sent before they were known", async () => {
  const { api, client, outbox } = await comingBack();
  const answer = await client.decide("cgroups", snapshot);
  if (!answer.ok) throw new Error(answer.error.message);
  await client.commit(answer.value);
  expect(client.fault?.message).toMatch(/deciding here$/);
  api.isAway = false;
  const later = (day: number) => ({ ...snapshot, observedAt: `2026-01-0${day}T00:00:00Z` });
  await client.decide("cgroups", later(3));
  expect(client.fault).toBeNull();
  expect(outbox.size).toBe(0);
  await client.report(REPORT, answer.value);
  await client.decide("cgroups", later(4));
  expect(outbox.size).toBe(0);
  expect(api.sent.filter((path) => path === "/v1/results")).toHaveLength(1);
});

test("results that the API does not accept now are kept and sent later", async () => {
  let isAway = true;
  const results: string[] = [];
  const url = await serving((request, body, response) => {
    if (request.url !== "/v1/results") return json(response, 200, answered("cgroups"));
    if (isAway) return json(response, 503, {});
    results.push(JSON.parse(body).decisionId);
    json(response, 200, {});
  });
  const { client, outbox } = clientFor(url);
  const answer = await client.decide("cgroups", snapshot);
  if (!answer.ok) throw new Error(answer.error.message);
  expect(answer.value.decidedBy).toBe("api");
  await client.report(REPORT, answer.value);
  expect(client.fault?.message).toMatch(/^results of d-1: .* answered 503/);
  expect([outbox.size, results]).toEqual([1, []]);
  isAway = false;
  await client.decide("cgroups", snapshot);
  expect([outbox.size, results]).toEqual([0, ["d-1"]]);
});
