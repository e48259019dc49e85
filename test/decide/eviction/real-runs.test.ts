import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { refusalUnderPressure } from "../../../api/decide/eviction/pressure.ts";
import type { PressureCondition } from "../../../api/model/eviction.ts";
import { decodedPod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, types } from "./eviction-kit.ts";

/** Logs and conditions of a real kubelet 1.36.3 under pressure (extracts: numbers, order, messages). */
interface RealPass {
  readonly at: string;
  readonly node: Json;
  readonly pods: readonly Json[];
  readonly conditions: readonly string[];
  readonly reclaims: string | null;
  readonly ranked: readonly string[] | null;
  readonly spared?: readonly string[];
  readonly evicted?: { readonly pod: string; readonly message: string } | null;
}
interface RealRun {
  readonly kubeletConfiguration: Json;
  readonly pods: readonly { readonly metadata: { readonly namespace: string; readonly name: string } }[];
  readonly passes: readonly RealPass[];
  readonly events: readonly { readonly pod: string; readonly message: string; readonly annotations: Json }[];
  readonly disruptionTarget: Readonly<Record<string, readonly Json[]>>;
  readonly admission: readonly {
    readonly pod: unknown;
    readonly reason: string | null;
    readonly message: string | null;
    readonly conditions: readonly PressureCondition[];
  }[];
  readonly readmission: readonly { readonly pod: unknown; readonly event: string }[];
}
const read = (name: string): RealRun =>
  JSON.parse(readFileSync(new URL(`../../data/real-eviction/${name}.json`, import.meta.url), "utf8")) as RealRun;

/**
 * Decides one pass after another, each with the facts of the previous one; the pods are those that the kubelet ranked.
 */
function replay({ kubeletConfiguration, pods, passes }: RealRun): readonly { real: RealPass; mine: Answer }[] {
  let facts: unknown;
  return passes.map((real) => {
    const active = pods.filter((p) => real.ranked?.includes(`${p.metadata.namespace}/${p.metadata.name}`) === true);
    const stats = { node: real.node, pods: real.pods };
    const mine = answer({ observedAt: real.at, kubeletConfiguration, pods: active, stats }, facts);
    facts = JSON.parse(JSON.stringify(mine.next));
    return { real, mine };
  });
}
const rankingFor = ({ decision }: Answer) =>
  decision.rankings.find((r) => r.signals.some((s) => s === decision.reclaim?.threshold.signal));
const nameOf = (p: { readonly namespace: string; readonly name: string }): string => `${p.namespace}/${p.name}`;

describe("memory pressure captured on a real kubelet", () => {
  const run = read("memory");
  const passes = replay(run);
  test.each(passes)(
    "at $real.at: the decision has the same conditions, resource, ranking, victim and message",
    ({ real, mine }) => {
      const { decision } = mine;
      expect(types(mine)).toEqual(real.conditions);
      expect(decision.reclaim?.resource ?? null).toBe(real.reclaims);
      if (real.ranked !== null) expect(rankingFor(mine)?.pods.map((p) => nameOf(p.pod))).toEqual(real.ranked);
      const evicted = decision.evicted.map((e) => ({ pod: nameOf(e.pod), message: e.message }));
      expect(evicted).toEqual(real.evicted ? [real.evicted] : []);
    },
  );
  test("the evictions have the same event annotations and DisruptionTarget conditions", () => {
    const gone = passes.flatMap(({ mine }) => mine.decision.evicted);
    expect(gone.map((e) => ({ pod: e.pod.name, message: e.message, annotations: e.annotations }))).toEqual(run.events);
    for (const { pod, condition } of gone) {
      expect(run.disruptionTarget[pod.name]?.[0]).toMatchObject({ ...condition });
    }
    expect(gone.length).toBe(2);
  });
});

describe("disk pressure captured on a real kubelet with only critical pods left", () => {
  test.each(replay(read("disk")))(
    "at $real.at: the decision is node-level reclaim without an eviction",
    ({ real, mine }) => {
      const { decision } = mine;
      expect(types(mine)).toEqual(real.conditions);
      expect(decision.reclaim).toMatchObject({
        resource: real.reclaims,
        nodeLevel: ["delete-unused-containers", "delete-unused-images"],
      });
      expect(decision.evicted).toEqual([]);
      expect(decision.spared.map(nameOf).sort()).toEqual([...(real.spared ?? [])].sort());
      // two equal pods: the kubelet's order changed from pass to pass, and the answer reports a tie
      const ranking = rankingFor(mine)?.pods ?? [];
      if (ranking.some((p) => p.tie)) expect(ranking.every((p) => p.tie)).toBe(true);
      else expect(ranking.map((p) => nameOf(p.pod))).toEqual(real.ranked);
    },
  );
  test("pods that the decision ranks as ties occurred in both orders on the kubelet", () => {
    const tied = replay(read("disk")).filter(({ mine }) => rankingFor(mine)?.pods.some((p) => p.tie));
    expect(new Set(tied.map(({ real }) => real.ranked?.join())).size).toBe(2);
  });
});

describe("admission of pods while the captured kubelet was under pressure", () => {
  const asked = [...read("memory").admission, ...read("disk").admission];
  test.each(asked)(
    "$pod.metadata.name under $conditions has the kubelet's reason and message",
    ({ pod, reason, message, conditions }) => {
      const refusal = refusalUnderPressure(decodedPod(pod), conditions);
      const reported = refusal && { reason: refusal.reason, message: `Pod was rejected: ${refusal.message}` };
      expect(reported).toEqual(reason === null ? null : { reason, message });
    },
  );
  test.each(read("disk").readmission)(
    "$pod.metadata.name, which ran before the restart, has the kubelet's message",
    ({ pod, event }) => expect(refusalUnderPressure(decodedPod(pod), ["DiskPressure"])?.message).toBe(event),
  );
});
