import { expect, test } from "vitest";
import type * as z from "zod";
import { resultsStored } from "../../api/http/openapi/answers.ts";
import { decisionAnswer, fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import { type decisionHead, decisionList, nodeAnswer, nodeList } from "../../api/http/openapi/list-answers.ts";
import { REPLAY, results as report } from "../../api/http/openapi/operation.ts";
import { VERDICTS } from "../../api/model/decision.ts";
import { ADMITTED } from "../../api/model/kinds.ts";
import {
  type ApiSubject,
  admin,
  answer,
  exampleSnapshot,
  fresh,
  get,
  type Of,
  post,
  problemOf,
  send,
} from "./api-subject.ts";
import { capturedSnapshot } from "./captured.ts";
import { snapshotRow, value } from "./store-rows.ts";

async function decideOn(api: ApiSubject, node: string, sequence: number, over: object = {}) {
  const snapshot = exampleSnapshot(node, { sequence, ...over });
  return answer(await post(api, "/v1/decisions/cgroups", { snapshot }), decisionAnswer);
}

export function history(of: Of): void {
  test("a node is listed with its latest snapshot and decisions", async () => {
    const node = fresh("node");
    const { snapshotId } = await decideOn(of(), node, 7);
    const { id } = await decideOn(of(), node, 8);
    const { nodes } = await answer(await get(of(), "/v1/nodes"), nodeList);
    expect(nodes.find((row) => row.name === node)).toMatchObject({ lastSequence: 8 });
    const found = await answer(await get(of(), `/v1/nodes/${node}`), nodeAnswer);
    expect(found).toMatchObject({ name: node, lastSequence: 8, latest: { cgroups: { id }, allocatable: null } });
    expect(found.lastSnapshotId).not.toBe(snapshotId);
  });

  test("a node of an older history with a name to be escaped is found by its path", async () => {
    const node = `${fresh("node")} /ü%`;
    value(await of().store.putSnapshot(snapshotRow({ id: crypto.randomUUID().replaceAll("-", ""), node })));
    expect((await answer(await get(of(), `/v1/nodes/${encodeURIComponent(node)}`), nodeAnswer)).name).toBe(node);
  });

  test("pages contain all decisions once, newest first, and filters narrow them", async () => {
    const node = fresh("node");
    const ids: string[] = [];
    for (let sequence = 0; sequence < 5; sequence++) {
      const kubeletConfiguration = { podPidsLimit: 200 + sequence };
      ids.unshift((await decideOn(of(), node, sequence, { kubeletConfiguration })).id);
    }
    await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(node) });
    const seen: z.output<typeof decisionHead>[] = [];
    let next: string | null = "";
    while (next !== null) {
      const token: string = next === "" ? "" : `&pageToken=${next}`;
      const page = await answer(
        await get(of(), `/v1/nodes/${node}/decisions?kind=cgroups&limit=2${token}`),
        decisionList,
      );
      expect(page.decisions.length).toBeLessThanOrEqual(2);
      seen.push(...page.decisions);
      next = page.nextPageToken;
    }
    expect(seen.map((head) => head.id)).toEqual(ids);
    const count = async (query: string) =>
      (await answer(await get(of(), `/v1/nodes/${node}/decisions?${query}`), decisionList)).decisions.length;
    expect(await count("")).toBe(6);
    expect(await count("kind=allocatable")).toBe(1);
    expect(await count("verdict=decided")).toBe(6);
    expect(await count("verdict=kubelet-refuses")).toBe(0);
    expect(await count("since=2001-01-01T00:00:00Z&until=9999-01-01T00:00:00Z")).toBe(6);
    expect(await count("until=2001-01-01T00:00:00Z")).toBe(0);
    expect(await count("pod=default/web")).toBe(0);
  });

  test("an unknown verdict is refused with the known ones", async () => {
    const node = fresh("node");
    await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node));
    const problem = await problemOf(await get(of(), `/v1/nodes/${node}/decisions?verdict=foo`), "invalid_query");
    expect(problem.issues).toEqual([
      { path: "verdict", message: `must be one of ${[...VERDICTS, ADMITTED].join(", ")}` },
    ]);
  });

  test("a GET has an ETag, and is a 304 when it matches", async () => {
    const node = fresh("node");
    const { id } = await decideOn(of(), node, 1);
    const first = await get(of(), `/v1/decisions/${id}`);
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[0-9a-f]{32}"$/);
    const length = (await first.text()).length;
    const again = await get(of(), `/v1/decisions/${id}`, { "if-none-match": `"other", W/${etag}` });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe("");
    expect(again.headers.get("etag")).toBe(etag);
    await post(of(), "/v1/results", report(id));
    const changed = await get(of(), `/v1/decisions/${id}`, { "if-none-match": etag });
    expect(changed.status).toBe(200);
    expect((await changed.text()).length).toBeGreaterThan(length);
  });
}

export function misspelt(of: Of): void {
  test.each([
    ["/v1/decisions?kind=evction", "eviction"],
    ["/v1/decisions?verdict=refusd", "refused"],
    ["/v1/decisions?reason=outofcpu", "OutOfcpu"],
    ["/v1/decisions?reason=outofmem", "OutOfmemory"],
    ["/v1/decisions?reason=memory.availabel", "memory.available"],
    ["/v1/nodes?reason=OutOfCPU", "OutOfcpu"],
    ["/v1/nodes?show=presure", "pressure"],
    ["/v1/agreement?reason=evicted", "Evicted"],
    ["/v1/agreement?kind=evictoin", "eviction"],
    ["/decisions?reason=outofcpu", "OutOfcpu"],
    ["/?reason=outofcpu", "OutOfcpu"],
    ["/agreement?reason=outofcpu", "OutOfcpu"],
  ])("%s is refused with the suggestion %s", async (path, meant) => {
    const { issues } = await problemOf(await get(of(), path), "invalid_query");
    expect(issues).toHaveLength(1);
    expect(issues?.[0]?.message).toContain(`did you mean ${meant}?`);
    expect(issues?.[0]?.near).toBe(meant);
  });

  test.each(["/v1/decisions", "/decisions", "/", "/agreement"])(
    "%s refuses an unknown reason with the known ones",
    async (path) => {
      const { issues } = await problemOf(await get(of(), `${path}?reason=SomethingElseEntirely`), "invalid_query");
      expect(issues?.[0]?.message).toMatch(/^there is no `SomethingElseEntirely`: kubelets give OutOfcpu, .*Evicted/);
    },
  );

  test.each(["OutOfexample.com/gpu", "OutOfhugepages-2Mi", "OutOfnothing"])(
    "a reason of any resource is accepted: %s",
    async (reason) => {
      const path = `/v1/decisions?reason=${encodeURIComponent(reason)}`;
      expect((await answer(await get(of(), path), decisionList)).decisions).toEqual([]);
    },
  );
}

export function fleets(of: Of): void {
  test("node pages contain each node once, and similar names are found on any page", async () => {
    const prefix = fresh("fleet");
    const names = Array.from({ length: 7 }, (_, i) => `${prefix}-${i} ü`);
    for (const node of names)
      value(await of().store.putSnapshot(snapshotRow({ id: crypto.randomUUID().replaceAll("-", ""), node })));
    const seen: string[] = [];
    for (let next: string | null = ""; next !== null; ) {
      const token: string = next === "" ? "" : `&pageToken=${next}`;
      const page = await answer(await get(of(), `/v1/nodes?limit=3${token}`), nodeList);
      expect(page.nodes.length).toBeLessThanOrEqual(3);
      seen.push(...page.nodes.map(({ name }) => name));
      next = page.nextPageToken;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((name) => name.startsWith(prefix))).toEqual(names);
    expect((await answer(await get(of(), "/v1/nodes"), nodeList)).nodes.length).toBeGreaterThanOrEqual(names.length);
    for (const query of ["limit=0", "limit=501", "limit=x", "pageToken=*", "pageToken=_w", "q=x"])
      await problemOf(await get(of(), `/v1/nodes?${query}`), "invalid_query");
    const typo = encodeURIComponent(`x${names[3]}`);
    const { near } = await problemOf(await get(of(), `/v1/nodes/${typo}`), "unknown_node");
    expect(near?.[0]).toBe(names[3]);
  });
}

export function results(of: Of): void {
  test("reports of the daemon's actions are stored with the decision, once each", async () => {
    const node = fresh("node");
    const { id } = await decideOn(of(), node, 1);
    const drift = async () => (await answer(await get(of(), `/v1/nodes/${node}`), nodeAnswer)).drift;
    // no daemon has reported results
    expect(await drift()).toBe(null);
    const stored = await answer(await post(of(), "/v1/results", report(id)), resultsStored, 201);
    expect(stored).toMatchObject({ decisionId: id, okCount: 1, failedCount: 0, fresh: true });
    expect(await answer(await post(of(), "/v1/results", report(id)), resultsStored, 200)).toEqual({
      ...stored,
      fresh: false,
    });
    const failed = {
      ...report(id),
      seq: 2,
      complete: false,
      results: [{ status: "failed", errno: "EBUSY" }, { status: "skipped" }, { status: "rolled_back" }],
    };
    await answer(await post(of(), "/v1/results", failed), resultsStored, 201);
    // a file that already had the wanted value did not count as drifted
    expect(await drift()).toBe(2);
    const statuses = ["unchanged", "unchanged", "applied", "planned"].map((status) => ({ status }));
    await answer(await post(of(), "/v1/results", { ...report(id), seq: 3, results: statuses }), resultsStored, 201);
    expect(await drift()).toBe(2);
    // a pass without wrong values reports no results, and its decision is identical
    await new Promise((resolve) => setTimeout(resolve, 2));
    expect((await decideOn(of(), node, 2)).id).toBe(id);
    expect(await drift()).toBe(0);
    await answer(
      await post(of(), "/v1/results", { ...report(id), seq: 4, results: statuses.slice(0, 2) }),
      resultsStored,
      201,
    );
    expect(await drift()).toBe(0);
    const full = await answer(await get(of(), `/v1/decisions/${id}`), fullDecision);
    expect(full.results.map(({ seq, okCount, failedCount }) => [seq, okCount, failedCount])).toEqual([
      [1, 1, 0],
      [2, 0, 2],
      [3, 2, 0],
      [4, 0, 0],
    ]);
    expect(full.results[1]?.steps[0]).toEqual({ status: "failed", errno: "EBUSY" });
  });

  test("results of an unknown decision, or without a status, are refused", async () => {
    await problemOf(await post(of(), "/v1/results", report("f".repeat(32))), "unknown_decision");
    const { id } = await decideOn(of(), fresh("node"), 1);
    const bad = await problemOf(await post(of(), "/v1/results", { ...report(id), results: [{}] }), "invalid_input");
    expect(bad.issues?.[0]?.path).toBe("results[0].status");
    await problemOf(await post(of(), "/v1/results", { ...report(id), more: 1 }), "invalid_input");
  });
}

export function replays(of: Of): void {
  test("a replay of an unchanged decision is the same, also with an empty body", async () => {
    const { id, decision } = await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot: capturedSnapshot() }),
      decisionAnswer,
    );
    const replayed = await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer);
    expect(replayed).toMatchObject({ id, same: true, differences: [], truncated: false });
    expect(replayed.recorded.decision).toEqual(decision);
    expect(replayed.replayed.decision).toEqual(decision);
    const headers = await admin(of());
    const empty = await of().fetch(`/v1/decisions/${id}/replay`, { method: "POST", headers });
    expect((await answer(empty, replayAnswer)).same).toBe(true);
  });

  test("a replay with another configuration lists every difference by its cgroup", async () => {
    const node = fresh("node");
    const { id } = await decideOn(of(), node, 1);
    const replayed = await answer(await post(of(), `/v1/decisions/${id}/replay`, REPLAY), replayAnswer);
    expect(replayed.same).toBe(false);
    const paths = replayed.differences.map((difference) => difference.path);
    expect(paths).toContain('cgroups["/kubepods.slice"].values.cpuWeight');
    for (const { recorded, replayed: now } of replayed.differences) expect(now).not.toEqual(recorded);
    const other = await post(of(), `/v1/decisions/${id}/replay`, { kubeletConfiguration: { podPidsLimit: 100 } });
    const grown = (await answer(other, replayAnswer)).differences.filter((d) => d.path.endsWith(".values.pidsLimit"));
    expect(grown).toHaveLength(1);
    expect(grown[0]).toMatchObject({ replayed: 100 });
    expect(grown[0]).not.toHaveProperty("recorded");
  });

  test("a replay's patch changes single fields of the recorded configuration, and a whole one replaces it", async () => {
    const recorded = { kubeReserved: { cpu: "100m", memory: "256Mi" }, podPidsLimit: 100 };
    const snapshot = { ...exampleSnapshot(fresh("node")), kubeletConfiguration: recorded };
    const { id } = await answer(await post(of(), "/v1/decisions/allocatable", { snapshot }), decisionAnswer);
    const replay = async (body: unknown) => {
      const { differences } = await answer(await post(of(), `/v1/decisions/${id}/replay`, body), replayAnswer);
      return differences.filter(({ path }) => path.startsWith("allocatable."));
    };
    const cpu = { path: "allocatable.cpu", recorded: "3900m", replayed: "3500m" };
    expect(await replay({ kubeletConfigurationPatch: { kubeReserved: { cpu: "500m" } } })).toEqual([cpu]);
    const whole = await replay({ kubeletConfiguration: { kubeReserved: { cpu: "500m" } } });
    expect(whole.map(({ path }) => path)).toEqual(["allocatable.cpu", "allocatable.memory"]);
    expect(await replay({ kubeletConfigurationPatch: { kubeReserved: { cpu: null } } })).toEqual([
      { ...cpu, replayed: "4" },
    ]);
    expect(await replay({ kubeletConfigurationPatch: { kubeletconfig: { kubeReserved: { cpu: "500m" } } } })).toEqual([
      cpu,
    ]);
    expect(await replay({ kubeletConfigurationPatch: null })).toEqual([]);
  });

  test("an impossible replay is refused", async () => {
    const { id } = await decideOn(of(), fresh("node"), 1);
    await problemOf(
      await post(of(), `/v1/decisions/${id}/replay`, { policyVersion: "kubelet-0.1+1" }),
      "unknown_policy_version",
    );
    for (const body of [
      { configuration: {} },
      { kubeletConfigurationPatch: [] },
      { kubeletConfigurationPatch: { maxPods: -1 } },
      { kubeletConfiguration: {}, kubeletConfigurationPatch: {} },
    ])
      await problemOf(await post(of(), `/v1/decisions/${id}/replay`, body), "invalid_input");
    const wrong = await problemOf(
      await post(of(), `/v1/decisions/${id}/replay`, { kubeletConfiguration: { maxPods: -1 } }),
      "invalid_input",
    );
    expect(wrong.issues?.[0]?.path).toBe("kubeletConfiguration.maxPods");
    await problemOf(await post(of(), "/v1/decisions/nothing/replay", {}), "unknown_decision");
  });
}
