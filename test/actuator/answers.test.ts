import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { checkAnswer } from "../../actuator/answer-check.ts";
import { ApiClient } from "../../actuator/client.ts";
import { decideHere } from "../../actuator/decide-here.ts";
import { Memory } from "../../actuator/memory.ts";
import { Outbox } from "../../actuator/outbox.ts";
import type { Problem } from "../../actuator/ports.ts";
import type { Kind } from "../../api/model/decision.ts";
import { realNode } from "../cli/run.ts";
import { scratch } from "./manifests/scratch.ts";

vi.setConfig({ testTimeout: 60_000 });

const snapshot = JSON.parse(readFileSync(realNode("snapshot.json"), "utf8"));
const newcomer = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "in", namespace: "a", uid: "u-in" },
  spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "10m" } } }] },
};
const ASKS: Partial<Record<Kind, object>> = { admission: { pod: newcomer } };
const WITH_RUNTIME = {
  ...snapshot,
  runtime: {
    images: JSON.parse(readFileSync(realNode("images.json"), "utf8")).images,
    containers: JSON.parse(readFileSync(realNode("containers.json"), "utf8")).containers,
    sandboxes: JSON.parse(readFileSync(realNode("sandboxes.json"), "utf8")).items,
  },
};

type Reply = Readonly<Record<string, unknown>>;
/** As the API would answer it. */
function answered(kind: Kind): Reply {
  const asked = kind.endsWith("-gc") ? WITH_RUNTIME : snapshot;
  const here = decideHere(kind, asked, { ask: ASKS[kind] });
  if (!here.ok) throw new Error(here.error.message);
  return JSON.parse(JSON.stringify({ ...here.value, id: "d-1" }));
}
const KINDS = ["allocatable", "cgroups", "cpus", "admission", "eviction", "container-gc", "image-gc"] as const;

test.each(KINDS)("what the core answers to %s passes", (kind) => {
  const checked = checkAnswer(kind, snapshot, answered(kind));
  expect(checked.ok ? "" : checked.error).toBe("");
  expect(checked.ok && checked.value.decidedBy).toBe("api");
});

/** A reply with another value at a path. */
function with_(reply: Reply, path: readonly (string | number)[], value: unknown): Reply {
  const copy = structuredClone(reply) as Record<string | number, unknown>;
  let at = copy;
  for (const step of path.slice(0, -1)) at = at[step] as Record<string | number, unknown>;
  at[path.at(-1) as string] = value;
  return copy;
}
const STRANGER = { namespace: "x", name: "y", uid: "nobody" };
const EVICTS = { pod: STRANGER, reason: "Evicted", message: "", gracePeriodSeconds: 0 };

test.each<readonly [Kind, readonly (string | number)[], unknown, RegExp]>([
  ["cgroups", ["id"], 7, /^id: /],
  ["cgroups", ["verdict"], "fine", /^verdict: is no verdict/],
  ["cgroups", ["decision"], undefined, /^decision: /],
  ["cgroups", ["decision", "version"], 3, /^decision\.version: /],
  ["cgroups", ["decision", "cgroups", 1, "path"], "/../../etc", /^decision\.cgroups\.1\.path: must not lead out/],
  ["cgroups", ["decision", "cgroups", 1, "path"], "kubepods", /^decision\.cgroups\.1\.path: must be a path/],
  ["cgroups", ["decision", "cgroups", 1, "files", 0, "path"], "../x", /files\.0\.path: must be the name/],
  ["cgroups", ["decision", "cgroups", 1, "files", 0, "value"], 5, /files\.0\.value: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "cpuShares"], 1e9, /values\.cpuShares: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "memory"], -5, /values\.memory: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "oomScoreAdj"], -1001, /values\.oomScoreAdj: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "cpusetCpus"], "0; rm", /values\.cpusetCpus: must be a list/],
  ["cgroups", ["decision", "cgroups", 1, "pod"], STRANGER, /pod x\/y \(nobody\), which this node does not have/],
  ["eviction", ["decision", "evicted"], [EVICTS], /pod x\/y \(nobody\), which this node does not have/],
  ["eviction", ["decision", "evicted"], [{ ...EVICTS, gracePeriodSeconds: -1 }], /gracePeriodSeconds: /],
  ["eviction", ["decision", "conditions"], [{ type: "Mood" }], /^decision\.conditions\.0\.type: /],
  ["eviction", ["next"], { atMs: "now" }, /^next\.?/],
  ["eviction", ["next"], null, /^next: is missing/],
  ["admission", ["decision", "admit"], "yes", /^decision\.admit: /],
  ["admission", ["decision", "preempt"], [STRANGER], /pod x\/y \(nobody\), which this node does not have/],
  ["admission", ["next"], { assignments: { cpu_manager_state: "{" } }, /^next\.assignments\.cpu_manager_state: /],
  ["container-gc", ["decision", "remove"], [{ id: "" }], /^decision\.remove\.0\./],
  ["image-gc", ["decision", "remove"], {}, /^decision\.remove: /],
  ["allocatable", ["decision", "allocatable"], { cpu: 1 }, /^decision\.allocatable\.cpu: /],
])("%s with another value at %j is told and not carried out", (kind, path, value, told) => {
  const checked = checkAnswer(kind, snapshot, with_(answered(kind), path, value));
  expect(checked.ok ? "it passed" : checked.error).toMatch(told);
});

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
  const memory = new Memory(dir, (message) => problems.push({ from: "memory", message }));
  const client = new ApiClient({ url, token: undefined, timeoutMs, fetch }, outbox, memory, (p) => problems.push(p));
  return { client, outbox, problems, told: () => problems.splice(0).map(({ message }) => message) };
}
const REPORT = { at: "2026-11-21T00:00:00Z", dryRun: false, complete: true, results: [{ status: "applied" }] };
const json = (response: ServerResponse, status: number, value: unknown): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

test.each<readonly [string, string, string, RegExp]>([
  ["HTML", "text/html", "<html>sign in</html>", /answered 200 with no JSON object \(text\/html\): is this the API\?/],
  ["a list", "application/json", "[]", /answered 200 with no JSON object/],
  ["nothing", "application/json", "", /answered 200 with no JSON object/],
  ["another object", "application/json", "{}", /answered what is no decision of this node: id: /],
])("an API that answers %s: decided here, told, and kept for a better one", async (_what, type, text, told) => {
  const url = await serving(
    (_request, _body, response) => void response.writeHead(200, { "content-type": type }).end(text),
  );
  const world = clientFor(url);
  const answer = await world.client.decide("cgroups", snapshot);
  if (!answer.ok) throw new Error(answer.error.message);
  expect(answer.value.decidedBy).toBe("here");
  expect(world.told()).toEqual([expect.stringMatching(told)]);
  await world.client.report(REPORT, answer.value);
  expect(world.outbox.size).toBe(1);
  // that it answers at all does not make it the API: nothing is thrown away
  for (let i = 0; i < 8; i++) await world.client.decide("cgroups", snapshot);
  expect(world.outbox.size).toBe(1);
});

test("an entry to which a ready API has no answer keeps the others back for so long, and no longer", async () => {
  const sent: string[] = [];
  let isReady = false;
  const url = await serving((request, body, response) => {
    if (request.url === "/readyz") return json(response, isReady ? 200 : 503, { status: isReady ? "ready" : "no" });
    const { snapshot: posted } = JSON.parse(body) as { snapshot?: { observedAt: string } };
    sent.push(posted?.observedAt ?? "results");
    if (posted?.observedAt === "2026-01-01T00:00:00Z") return json(response, 500, { code: "internal" });
    json(response, 200, request.url === "/v1/results" ? {} : answered("cgroups"));
  });
  const { client, outbox, told } = clientFor(url);
  for (const day of [1, 2])
    outbox.add({ kind: "cgroups", snapshot: { ...snapshot, observedAt: `2026-01-0${day}T00:00:00Z` }, report: REPORT });
  // an API whose history fails answers so to everything: nothing is lost for it
  for (let i = 0; i < 12; i++) await client.decide("cgroups", snapshot);
  expect(outbox.size).toBe(2);
  told();
  isReady = true;
  for (let i = 0; i < 5 && outbox.size === 2; i++) await client.decide("cgroups", snapshot);
  expect(outbox.size).toBe(0);
  expect(told().filter((text) => text.startsWith("a decision made earlier is not taken: "))).toHaveLength(1);
  expect(sent).toContain("2026-01-02T00:00:00Z");
});

test("an API that hangs is waited for once, and then left alone for a while", async () => {
  let requests = 0;
  const url = await serving(() => void requests++);
  const { client, outbox, told } = clientFor(url, 2000);
  for (let i = 0; i < 20; i++) {
    const answer = await client.decide("cgroups", snapshot);
    expect(answer.ok && answer.value.decidedBy).toBe("here");
    if (answer.ok) await client.report(REPORT, answer.value);
  }
  expect(requests).toBeLessThan(6);
  expect(outbox.size).toBe(20);
  expect(told()[0]).toMatch(/does not answer \(TimeoutError\): deciding here$/);
});

test("results that an API does not take now are kept, and sent with their decision later", async () => {
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
  expect([outbox.size, results]).toEqual([1, []]);
  isAway = false;
  await client.decide("cgroups", snapshot);
  expect([outbox.size, results]).toEqual([0, ["d-1"]]);
});
