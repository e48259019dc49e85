import type { DecisionHead, PodRef } from "../../../db/rows.ts";
import { many } from "../../text/sentences/words.ts";
import type { Difference } from "../difference.ts";
import type { ProblemCode } from "../problem.ts";
import { rfc3339 } from "../timestamp.ts";
import type { Compared, Versions } from "./replay-one.ts";

/** The first few, so that a thousand changed decisions fit in an answer. */
const FEW_DIFFERENCES = 5;
/** The maximum number of pods listed: an eviction pass ranks all pods of its node. */
const FEW_PODS = 5;
/** Characters of JSON of one value. */
const LONG = 256;

/** A place where both decisions differ. */
export interface ShortDifference extends Difference {
  /** The values that are too long to be listed here. */
  readonly omitted?: readonly ("recorded" | "replayed")[];
}

/** A decision that would be another one, for lists. */
export interface ChangedDecision extends Versions {
  readonly id: string;
  readonly kind: string;
  readonly node: string;
  readonly decidedAt: string;
  readonly pod: PodRef | null;
  readonly recordedVerdict: string;
  /** The new verdict; null: it is refused now. */
  readonly verdict: string | null;
  /** The recorded reason in the kubelet's words, if any; absent in the answers of an older API. */
  readonly recordedReason?: string | null;
  readonly reason?: string | null;
  /** At most `FEW_DIFFERENCES`. */
  readonly differences: readonly ShortDifference[];
  readonly differenceCount: number;
  /** The pods of which it decides otherwise, NAMESPACE/NAME; at most `FEW_PODS`. */
  readonly pods: readonly string[];
  readonly podCount: number;
  /** Why it is refused. */
  readonly problem: { readonly code: ProblemCode; readonly detail: string } | null;
}

/** A decision that cannot be replayed, since it or its snapshot is damaged. */
export interface UnreadableDecision extends Pick<ChangedDecision, "id" | "kind" | "node" | "decidedAt"> {
  /** Says what cannot be read, and what to do about it. */
  readonly unreadable: string;
}

export const unreadableDecision = (
  { id, kind, node, decidedAtMs }: DecisionHead,
  unreadable: string,
): UnreadableDecision => ({ id, kind, node, decidedAt: rfc3339(decidedAtMs), unreadable });

/** The changed decision; null: unchanged, or not known. */
export function changedDecision(row: DecisionHead, again: Compared): ChangedDecision | null {
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

/** The first few, and how many there are. */
export const shortPods = (all: readonly string[]): Pick<ChangedDecision, "pods" | "podCount"> => ({
  pods: all.slice(0, FEW_PODS),
  podCount: all.length,
});

/** `shop/web`, or `shop/web and 2 more pods`; empty: it is about the node alone. */
export function podsText({ pods: [first = ""], podCount }: Pick<ChangedDecision, "pods" | "podCount">): string {
  return podCount < 2 ? first : `${first} and ${many(podCount - 1, "more pod")}`;
}

/** The first few, without the values that are long. */
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

/** The outcome of a decision; `unreadable`: it, or what it was decided on, is damaged. */
type ReplayOutcome = Compared["state"] | "unreadable";
/**
 * The number of replayed records and their results. `replayed` is the sum of `same`, `differs` and `refused`.
 * `decisions`: how many decisions the records represent.
 */
export type Counts = { readonly replayed: number; readonly decisions: number } & {
  readonly [State in ReplayOutcome]: number;
};

/** The number of records that cannot be replayed. */
export const lostOf = ({ gone, unreadable }: Counts): number => gone + unreadable;
/** The number of all records. */
export const passedOf = (counts: Counts): number => counts.replayed + lostOf(counts);

/** How many decisions the records represent; empty: one each. */
export function standForText(counts: Counts): string {
  const records = passedOf(counts);
  return counts.decisions > records
    ? `${many(records, "record")} ${records === 1 ? "stands" : "stand"} for ${many(counts.decisions, "decision")}: one that is the same again is counted on its record`
    : "";
}

/** Decisions that are others now: of which kind, and from which verdict to which. */
export interface VerdictChange {
  readonly kind: string;
  readonly recorded: string;
  /** The new verdict; equal to `recorded` if only details differ. Null: it is refused now. */
  readonly replayed: string | null;
  readonly count: number;
}

/** Decisions that were recorded under one kubelet version and made again under one; none that are unreadable. */
type VersionCounts = Versions & Counts;

/** Everything that was counted. Grows with the nodes and kinds of a history, not with its decisions. */
export interface Tally {
  readonly counts: Counts;
  readonly byKind: Readonly<Record<string, Counts>>;
  readonly byNode: Readonly<Record<string, Counts>>;
  /** The oldest first. */
  readonly byVersion: readonly VersionCounts[];
  /** The most frequent first. */
  readonly verdicts: readonly VerdictChange[];
}

type Counting = { -readonly [Name in keyof Counts]: number };
const nothing = (): Counting => ({
  replayed: 0,
  same: 0,
  differs: 0,
  refused: 0,
  gone: 0,
  unreadable: 0,
  decisions: 0,
});
const NAMES = Object.keys(nothing()) as readonly (keyof Counts)[];

function add(to: Counting, more: Counts): void {
  // an older API tells no `decisions`
  for (const name of NAMES) to[name] += more[name] ?? 0;
}
function addAt(map: Map<string, Counting>, key: string, more: Counts): void {
  const known = map.get(key) ?? nothing();
  map.set(key, known);
  add(known, more);
}

export class Counter {
  readonly #counts = nothing();
  readonly #byKind = new Map<string, Counting>();
  readonly #byNode = new Map<string, Counting>();
  readonly #byVersion = new Map<string, Counting>();
  readonly #verdicts = new Map<string, VerdictChange>();

  get counts(): Counts {
    return this.#counts;
  }

  /** One record. */
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
      byVersion: [...this.#byVersion].sort(([a], [b]) => (a < b ? -1 : 1)).map(ofVersions),
      verdicts: [...this.#verdicts.values()].sort((a, b) => b.count - a.count || (nameOf(a) < nameOf(b) ? -1 : 1)),
    };
  }
}

const versionsKey = ({ recordedUnder, replayedUnder }: Versions): string => `${recordedUnder} ${replayedUnder}`;
function ofVersions([key, counts]: readonly [string, Counts]): VersionCounts {
  const [recordedUnder = "", replayedUnder = ""] = key.split(" ");
  return { recordedUnder, replayedUnder, ...counts };
}
const nameOf = ({ kind, recorded, replayed }: VerdictChange): string => `${kind} ${recorded} ${replayed ?? ""}`;
const fromEntries = (map: ReadonlyMap<string, Counting>): Record<string, Counts> =>
  Object.fromEntries([...map].map(([key, counts]) => [key, { ...counts }]));
