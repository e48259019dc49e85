import { expect, test } from "vitest";
import { decisionAnswer, fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import { decisionList } from "../../api/http/openapi/list-answers.ts";
import type { EvictionDecision } from "../../api/model/eviction.ts";
import { pod } from "../kit/pods.ts";
import { answer, fresh, get, type Of, post, problemOf } from "./api-subject.ts";

const MI = 2 ** 20;
const START = Date.parse("2026-11-21T10:00:00Z");
const timeAt = (seconds: number): string => new Date(START + seconds * 1000).toISOString();

/** A node of 1 GiB whose memory is at `availableMi`, `seconds` after the start; soft threshold 300Mi for 30 s. */
export function memorySnapshot(node: string, seconds: number, availableMi: number) {
  const time = timeAt(seconds);
  const memory = { time, availableBytes: availableMi * MI, usageBytes: 0, workingSetBytes: (1024 - availableMi) * MI };
  const uid = "u-web";
  return {
    observedAt: time,
    node: { metadata: { name: node }, status: { capacity: { cpu: "2", memory: "1Gi" } } },
    kubeletConfiguration: {
      evictionHard: { "memory.available": "50Mi" },
      evictionSoft: { "memory.available": "300Mi" },
      evictionSoftGracePeriod: { "memory.available": "30s" },
      enforceNodeAllocatable: [],
    },
    pods: [pod("web", { metadata: { namespace: "shop", uid }, status: { phase: "Running" } })],
    stats: {
      node: { memory },
      pods: [
        {
          podRef: { name: "web", namespace: "shop", uid },
          containers: [{ name: "c", memory: { time, workingSetBytes: 500 * MI, usageBytes: 500 * MI } }],
          memory: { time, workingSetBytes: 500 * MI, usageBytes: 500 * MI },
        },
      ],
    },
  };
}

/** Kinds whose answer depends on facts that were remembered about the node. */
export function remembering(of: Of): void {
  clockSteps(of);
  const pass = async (node: string, seconds: number, availableMi: number, ask?: object) => {
    const body = { snapshot: memorySnapshot(node, seconds, availableMi), ...(ask === undefined ? {} : { ask }) };
    const answered = await answer(await post(of(), "/v1/decisions/eviction", body), decisionAnswer);
    return { ...answered, decision: answered.decision as unknown as EvictionDecision };
  };

  test("a soft threshold evicts after its grace period over several requests; each replays the same", async () => {
    const node = fresh("node");
    const first = await pass(node, 0, 200);
    expect(first.decision.evicted).toEqual([]);
    expect(first.decision.conditions).toMatchObject([{ type: "MemoryPressure", observed: true }]);
    const second = await pass(node, 10, 200);
    expect(second.decision.evicted).toEqual([]);
    const third = await pass(node, 40, 200);
    expect(third.decision.evicted).toMatchObject([{ pod: { namespace: "shop", name: "web" }, reason: "Evicted" }]);
    for (const { id } of [first, second, third]) {
      const replayed = await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer);
      expect(replayed.same, JSON.stringify(replayed.differences)).toBe(true);
    }
    const found = await answer(await get(of(), `/v1/nodes/${node}/decisions?pod=shop/web`), decisionList);
    expect(found.decisions.map(({ id }) => id)).toEqual([third.id]);
    const full = await answer(await get(of(), `/v1/decisions/${third.id}`), fullDecision);
    expect(full).toMatchObject({ verdict: "evicts", ask: { facts: { atMs: START + 10_000 } } });
  });

  test("a repeated request is the same decision, and is remembered once", async () => {
    const node = fresh("node");
    await pass(node, 0, 200);
    const second = await pass(node, 10, 200);
    const again = await pass(node, 10, 200);
    expect(again).toEqual(second);
    const third = await pass(node, 40, 200);
    expect(third.decision.evicted).toHaveLength(1);
  });

  test("a late pass is not remembered, and other boots and nameless nodes have their own facts", async () => {
    const node = fresh("node");
    await pass(node, 0, 500);
    const second = await pass(node, 10, 200);
    const late = await pass(node, 0, 500);
    expect(late.decision.conditions).toEqual([]);
    expect(await pass(node, 10, 200)).toEqual(second);
    expect((await pass(node, 45, 200)).decision.evicted).toHaveLength(1);

    const capacity = { node: { status: { capacity: { cpu: "2", memory: "1Gi" } } } };
    const unknown = async (seconds: number) => {
      const { node: _, ...rest } = memorySnapshot(node, seconds, 200);
      const response = await post(of(), "/v1/decisions/eviction", { snapshot: { ...rest, ...capacity } });
      return (await answer(response, decisionAnswer)).decision as unknown as EvictionDecision;
    };
    await unknown(50);
    expect((await unknown(90)).evicted).toEqual([]);

    const boot = fresh("node");
    const of1 = { ...memorySnapshot(boot, 0, 200), bootId: "one" };
    const of2 = { ...memorySnapshot(boot, 40, 200), bootId: "two" };
    await answer(await post(of(), "/v1/decisions/eviction", { snapshot: of1 }), decisionAnswer);
    const rebooted = await answer(await post(of(), "/v1/decisions/eviction", { snapshot: of2 }), decisionAnswer);
    expect((rebooted.decision as unknown as EvictionDecision).evicted).toEqual([]);
  });

  test("a caller with its own facts gets the same answers, and the history remembers nothing", async () => {
    const [node, own] = [fresh("node"), fresh("node")];
    const one = await pass(node, 0, 200);
    const kept = await pass(own, 0, 200, { facts: null });
    await pass(node, 10, 200);
    const two = await pass(own, 10, 200, { facts: kept.next });
    const three = await pass(own, 40, 200, { facts: two.next });
    expect(three.decision).toEqual((await pass(node, 40, 200)).decision);
    expect(kept.decision).toEqual(one.decision);
    expect((await of().store.readFacts(own)).ok && (await of().store.readFacts(own))).toMatchObject({ value: {} });
  });

  test("malformed facts are refused with their paths, and missing stats are refused", async () => {
    const node = fresh("node");
    const bad = await post(of(), "/v1/decisions/eviction", {
      snapshot: memorySnapshot(node, 0, 200),
      ask: { facts: { atMs: "now" } },
    });
    const problem = await problemOf(bad, "invalid_input");
    expect(problem.issues?.map(({ path }) => path)).toContain("ask.facts.atMs");
    const { stats: _, ...without } = memorySnapshot(node, 0, 200);
    const missing = await problemOf(await post(of(), "/v1/decisions/eviction", { snapshot: without }), "needs_input");
    expect(missing.needs).toContain("stats");
  });
}

function clockSteps(of: Of): void {
  test("a pass after a clock step back is remembered, repeated ones are the same, and grace periods go on", async () => {
    const node = fresh("node");
    const HOUR = 3600;
    const step = { clockSteppedMs: -HOUR * 1000, clockSteppedSince: timeAt(10) };
    const ask = async (seconds: number, more: object = {}) => {
      const snapshot = { ...memorySnapshot(node, seconds, 200), ...more };
      return answer(await post(of(), "/v1/decisions/eviction", { snapshot }), decisionAnswer);
    };
    await ask(0);
    await ask(10);
    const stepped = await ask(20 - HOUR, step);
    expect((stepped.decision as unknown as EvictionDecision).evicted).toEqual([]);
    expect(JSON.stringify(stepped.reasons)).toContain('"clock_stepped"');
    expect(stepped.next).toMatchObject({
      atMs: START + (20 - HOUR) * 1000,
      thresholdsFirstObservedAt: [{ atMs: START - HOUR * 1000 }],
    });
    expect(await ask(20 - HOUR, step)).toEqual(stepped);
    // the daemon died before it stored the time of that pass, and reports the same clock step again
    const again = await ask(25 - HOUR, step);
    expect(JSON.stringify(again.reasons)).not.toContain("clock_stepped");
    const last = await ask(31 - HOUR);
    expect((last.decision as unknown as EvictionDecision).evicted).toHaveLength(1);
    const replayed = await answer(await post(of(), `/v1/decisions/${stepped.id}/replay`, {}), replayAnswer);
    expect(replayed.same, JSON.stringify(replayed.differences)).toBe(true);
  });
}
