import * as z from "zod";
import type { DecisionHead } from "../../../db/rows.ts";
import { byKey, byText } from "../../base/order.ts";
import { KINDS } from "../../model/decision.ts";
import { type Form, podRef, shortDifference } from "../../model/forms.ts";
import { many } from "../../text/sentences/words.ts";
import type { Difference } from "../difference.ts";
import { PROBLEM_CODES } from "../problem.ts";
import { rfc3339 } from "../timestamp.ts";
import type { Compared, Versions } from "./replay-one.ts";

/** The first few, so that a thousand changed decisions fit in a response. */
const FEW_DIFFERENCES = 5;
/** The most pods listed: an eviction pass ranks all pods of its node. */
const FEW_PODS = 5;
/** The most characters of one value's JSON. */
const LONG = 256;

const integer = z.number();
const time = z.iso.datetime();
const kind: z.ZodType<string> = z.enum(KINDS);
const versions = {
  recordedUnder: z.string().describe("the kubelet version whose rules made the recorded decision"),
  replayedUnder: z.string().describe("the kubelet version whose rules make the new decision"),
};

/** A place where two decisions differ. */
export type ShortDifference = Form<typeof shortDifference>;

/** A changed decision for lists: at most `FEW_DIFFERENCES` and `FEW_PODS`. An older API sends no reasons. */
export const changedDecision = z.strictObject({
  id: z
    .string()
    .describe("the id of the recorded decision; POST /v1/decisions/ID/replay answers both decisions in full"),
  kind,
  node: z.string(),
  decidedAt: time,
  pod: podRef.nullable(),
  ...versions,
  recordedVerdict: z.string(),
  verdict: z.string().nullable().describe("the verdict of the new decision; null: the request is refused"),
  recordedReason: z.string().nullable().describe("the kubelet's reason in the recorded decision; null: none"),
  reason: z.string().nullable().describe("the kubelet's reason in the new decision; null: none"),
  differences: z.array(shortDifference).describe("the first few differences"),
  differenceCount: integer.describe("the number of differences; 1000: at least 1000"),
  pods: z
    .array(z.string())
    .describe(
      "NAMESPACE/NAME of the first few pods for which the decision differs: the pod of the request, and pods of the node whose eviction, rank, preemption, limits or other parts of the decision differ",
    ),
  podCount: integer,
  problem: z
    .strictObject({ code: z.enum(PROBLEM_CODES), detail: z.string() })
    .nullable()
    .describe("why the request is refused; null: it is not"),
});
export type ChangedDecision = Form<typeof changedDecision>;

/** A decision that cannot be replayed, since it or its snapshot is damaged. */
export const unreadableDecision = z.strictObject({
  id: z.string(),
  kind: z.string().describe("the kind of the decision, which this version may not know"),
  node: z.string(),
  decidedAt: time,
  unreadable: z.string().describe("the part that cannot be read, and what to do about it"),
});
export type UnreadableDecision = Form<typeof unreadableDecision>;

export const unreadableOf = (
  { id, kind, node, decidedAtMs }: DecisionHead,
  unreadable: string,
): UnreadableDecision => ({ id, kind, node, decidedAt: rfc3339(decidedAtMs), unreadable });

/** The changed decision; null if unchanged or unknown. */
export function changedDecisionOf(row: DecisionHead, again: Compared): ChangedDecision | null {
  if (again.state !== "differs" && again.state !== "refused") return null;
  const { id, kind, node, decidedAtMs, pod, verdict, reason } = row;
  return {
    id,
    kind,
    node,
    decidedAt: rfc3339(decidedAtMs),
    pod,
    recordedUnder: again.recordedUnder,
    replayedUnder: again.replayedUnder,
    recordedVerdict: verdict,
    verdict: again.verdict,
    recordedReason: reason,
    reason: again.reason ?? null,
    differences: shortDifferences(again.differences),
    differenceCount: again.differences.length,
    ...shortPods(again.pods),
    problem: again.problem === null ? null : { code: again.problem.code, detail: again.problem.detail },
  };
}

/** The first few pods, and their number. */
export const shortPods = (all: readonly string[]): Pick<ChangedDecision, "pods" | "podCount"> => ({
  pods: all.slice(0, FEW_PODS),
  podCount: all.length,
});

/** `shop/web`, or `shop/web and 2 more pods`; empty for a decision about the node alone. */
export function podsText({ pods: [first = ""], podCount }: Pick<ChangedDecision, "pods" | "podCount">): string {
  return podCount < 2 ? first : `${first} and ${many(podCount - 1, "more pod")}`;
}

/** The first few differences, without long values. */
export const shortDifferences = (all: readonly Difference[]): readonly ShortDifference[] =>
  all.slice(0, FEW_DIFFERENCES).map(short);

function short(difference: Difference): ShortDifference {
  const omitted = (["recorded", "replayed"] as const).filter(
    (side) => (JSON.stringify(difference[side]) ?? "").length > LONG,
  );
  if (omitted.length === 0) return difference;
  const { path, resources: _, ...sides } = difference;
  for (const side of omitted) delete sides[side];
  return { path, ...sides, omitted };
}

/** How many records were decided again, and their results. */
export const replayCounts = z
  .strictObject({
    replayed: integer.describe(
      "the number of records that were decided again: `same`, `differs` and `refused` together",
    ),
    same: integer,
    differs: integer,
    refused: integer.describe(
      "the number of records that cannot be decided with the requested configuration or kubelet version",
    ),
    gone: integer.describe("the number of records that were not replayed because their snapshot is no longer stored"),
    unreadable: integer.describe(
      "the number of records that were not replayed because the record, its snapshot or its ask is damaged",
    ),
    decisions: integer.describe(
      "the number of decisions that all these records represent: each record counts as often as its decision was made (`times`)",
    ),
  })
  .describe("numbers of recorded decisions by their result");
export type Counts = Form<typeof replayCounts>;

/** The number of changed decisions. */
export const changedOf = ({ differs, refused }: Counts): number => differs + refused;
export const notReplayedOf = ({ gone, unreadable }: Counts): number => gone + unreadable;
/** The number of all records. */
export const passedOf = (counts: Counts): number => counts.replayed + notReplayedOf(counts);

/** How many decisions the records represent; empty if one each. */
export function representedText(counts: Counts): string {
  const records = passedOf(counts);
  return counts.decisions > records
    ? `${many(records, "record")} ${records === 1 ? "stands" : "stand"} for ${many(counts.decisions, "decision")}: one that is the same again is counted on its record`
    : "";
}

/** All counts. Their size depends on the nodes and kinds of a history, not on its decisions. */
export const tallyForm = z.strictObject({
  counts: replayCounts,
  byKind: z.record(z.string(), replayCounts),
  byNode: z.record(z.string(), replayCounts),
  byVersion: z
    .array(z.strictObject({ ...versions, ...replayCounts.shape }))
    .describe("the counts by the kubelet versions of the recorded and of the new decision, without unreadable records"),
  verdicts: z
    .array(
      z.strictObject({
        kind,
        recorded: z.string(),
        replayed: z
          .string()
          .nullable()
          .describe(
            "the verdict of the new decision; equal to `recorded`: another part of the decision differs; null: the request is refused",
          ),
        count: integer,
      }),
    )
    .describe("the changes of the verdict among decisions that differ or are refused, the most frequent first"),
});
export type Tally = Form<typeof tallyForm>;
/** Changed decisions by kind, old and new verdict. */
export type VerdictChange = Tally["verdicts"][number];
type VersionCounts = Tally["byVersion"][number];

type MutableCounts = { -readonly [Name in keyof Counts]: number };
const nothing = (): MutableCounts => ({
  replayed: 0,
  same: 0,
  differs: 0,
  refused: 0,
  gone: 0,
  unreadable: 0,
  decisions: 0,
});
const NAMES = Object.keys(nothing()) as readonly (keyof Counts)[];

function add(to: MutableCounts, more: Counts): void {
  // an older API sends no `decisions`
  for (const name of NAMES) to[name] += more[name] ?? 0;
}
function addAt(map: Map<string, MutableCounts>, key: string, more: Counts): void {
  const known = map.get(key) ?? nothing();
  map.set(key, known);
  add(known, more);
}

export class ReplayTally {
  readonly #counts = nothing();
  readonly #byKind = new Map<string, MutableCounts>();
  readonly #byNode = new Map<string, MutableCounts>();
  readonly #byVersion = new Map<string, MutableCounts>();
  readonly #verdicts = new Map<string, VerdictChange>();

  get counts(): Counts {
    return this.#counts;
  }

  /** Counts one record. */
  count(
    { kind, node, verdict, series }: Pick<DecisionHead, "kind" | "node" | "verdict" | "series">,
    again: { readonly state: "unreadable" } | Pick<Compared, "state" | "verdict" | keyof Versions>,
  ): void {
    const isLost = again.state === "gone" || again.state === "unreadable";
    const one = { ...nothing(), replayed: isLost ? 0 : 1, [again.state]: 1, decisions: series?.times ?? 1 };
    add(this.#counts, one);
    addAt(this.#byKind, kind, one);
    addAt(this.#byNode, node, one);
    if (again.state === "unreadable") return;
    addAt(this.#byVersion, versionsKey(again), one);
    if (again.state === "differs" || again.state === "refused") {
      this.#change({ kind, recorded: verdict, replayed: again.verdict, count: 1 });
    }
  }

  /** Adds the counts of another tally. */
  add({ counts, byKind, byNode, byVersion, verdicts }: Tally): void {
    add(this.#counts, counts);
    for (const [kind, more] of Object.entries(byKind)) addAt(this.#byKind, kind, more);
    for (const [node, more] of Object.entries(byNode)) addAt(this.#byNode, node, more);
    for (const both of byVersion) addAt(this.#byVersion, versionsKey(both), both);
    for (const change of verdicts) this.#change(change);
  }

  #change(change: VerdictChange): void {
    const key = JSON.stringify([change.kind, change.recorded, change.replayed]);
    const count = (this.#verdicts.get(key)?.count ?? 0) + change.count;
    this.#verdicts.set(key, { ...change, count });
  }

  tally(): Tally {
    return {
      counts: { ...this.#counts },
      byKind: fromEntries(this.#byKind),
      byNode: fromEntries(this.#byNode),
      byVersion: [...this.#byVersion].sort(byKey).map(ofVersions),
      verdicts: [...this.#verdicts.values()].sort((a, b) => b.count - a.count || byText(nameOf(a), nameOf(b))),
    };
  }
}

const versionsKey = ({ recordedUnder, replayedUnder }: Versions): string => `${recordedUnder} ${replayedUnder}`;
function ofVersions([key, counts]: readonly [string, Counts]): VersionCounts {
  const [recordedUnder = "", replayedUnder = ""] = key.split(" ");
  return { recordedUnder, replayedUnder, ...counts };
}
const nameOf = ({ kind, recorded, replayed }: VerdictChange): string => `${kind} ${recorded} ${replayed ?? ""}`;
const fromEntries = (map: ReadonlyMap<string, MutableCounts>): Record<string, Counts> =>
  Object.fromEntries([...map].map(([key, counts]) => [key, { ...counts }]));
