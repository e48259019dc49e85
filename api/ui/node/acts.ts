import type { AdmissionDecision } from "../../model/admission.ts";
import type { EvictionDecision, EvictionSignal } from "../../model/eviction.ts";
import type { PodRef } from "../../model/managers.ts";
import { thresholdText } from "../../text/tables/thresholds.ts";

export const ACT_KINDS = ["evicted", "reclaimed", "preempted"] as const;
export type ActKind = (typeof ACT_KINDS)[number];

/** What a decision did about what was short, as a plot marks it. */
export interface Act {
  readonly kind: ActKind;
  readonly decisionId: string;
  /** When the stats were taken that it was decided on; where they have no time, when it was decided. */
  readonly atMs: number;
  /** The same of the last pass that did it, and how many passes after each other did. */
  readonly untilMs: number;
  readonly times: number;
  /** The pods that go, or what was run. */
  readonly what: string;
  /** The threshold, the limit or the pod that it was done for. */
  readonly why: string;
  /** In whose plots it is marked. */
  readonly signals: readonly EvictionSignal[];
}
interface Head {
  readonly id: string;
  readonly decidedAtMs: number;
}

const nameOf = ({ namespace, name, uid }: PodRef): string => (name === "" ? uid : `${namespace}/${name}`);
const CAUSES = {
  emptyDir: "a limit of an emptyDir",
  "pod-ephemeral-storage": "the pod’s limit of ephemeral-storage",
  "container-ephemeral-storage": "a container’s limit of ephemeral-storage",
} as const;

/** What an eviction pass did: the pods that go, or what it ran on the node where that was enough. */
export function actsOfPass({ reclaim, evicted, thresholds }: EvictionDecision, { id, decidedAtMs }: Head): Act[] {
  const of = reclaim?.threshold;
  const own = thresholds.find(({ signal, value }) => signal === of?.signal && value === of.value);
  const atMs = own?.statsAtMs ?? latestOf(thresholds) ?? decidedAtMs;
  const at = { decisionId: id, atMs, untilMs: atMs, times: 1 };
  const why = of === undefined ? "" : thresholdText(of);
  const signals = of === undefined ? [] : [of.signal];
  const gone = evicted.map(
    ({ pod, cause }): Act =>
      cause === "threshold"
        ? { kind: "evicted", ...at, what: nameOf(pod), why, signals }
        : { kind: "evicted", ...at, what: nameOf(pod), why: CAUSES[cause], signals: ["nodefs.available"] },
  );
  if (gone.length > 0 || reclaim === null || reclaim.nodeLevel.length === 0) return gone;
  return [{ kind: "reclaimed", ...at, what: reclaim.nodeLevel.join(", "), why, signals }];
}
function latestOf(thresholds: EvictionDecision["thresholds"]): number | null {
  const times = thresholds.flatMap(({ statsAtMs }) => (statsAtMs === null ? [] : [statsAtMs]));
  return times.length === 0 ? null : Math.max(...times);
}

const FREED: Readonly<Record<string, readonly EvictionSignal[]>> = {
  memory: ["allocatableMemory.available", "memory.available"],
  "ephemeral-storage": ["nodefs.available"],
};
/** The pods that an admission ends, as one; they are marked where what they free is seen. */
export function actsOfAdmission(
  { pod, preempt }: Pick<AdmissionDecision, "pod" | "preempt">,
  { id, decidedAtMs }: Head,
): Act[] {
  if (preempt.length === 0) return [];
  const others = preempt.length - MOST_NAMES;
  const names = preempt.slice(0, MOST_NAMES).map(nameOf).join(", ");
  const freed = preempt.flatMap(({ frees }) => frees.flatMap(({ resource }) => FREED[resource] ?? []));
  return [
    {
      kind: "preempted",
      decisionId: id,
      atMs: decidedAtMs,
      untilMs: decidedAtMs,
      times: 1,
      what: others > 0 ? `${names} and ${others} more` : names,
      why: nameOf(pod),
      signals: [...new Set(freed)],
    },
  ];
}
const MOST_NAMES = 3;

/** The same done by passes that follow each other, told as one. Oldest first. */
export function spansOf(acts: readonly Act[]): readonly Act[] {
  const spans: Act[] = [];
  for (const act of acts.toSorted((a, b) => a.atMs - b.atMs)) {
    const last = spans.findLastIndex(({ kind, why }) => kind === act.kind && why === act.why);
    const open = spans[last];
    if (open !== undefined && open.what === act.what)
      spans[last] = { ...open, untilMs: act.untilMs, times: open.times + act.times };
    else spans.push(act);
  }
  return spans;
}

/** What a run of passes did, of which the first and the last are read. */
export const actsOfRun = (first: readonly Act[], last: readonly Act[], passes: number): readonly Act[] =>
  first.map((act) => {
    const end = last.find(({ kind, what }) => kind === act.kind && what === act.what) ?? act;
    const why = end.why === act.why ? act.why : `${act.why}, then ${end.why}`;
    return { ...act, why, untilMs: Math.max(act.atMs, end.atMs), times: passes };
  });
