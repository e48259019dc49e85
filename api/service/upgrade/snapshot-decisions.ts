import { decideKind } from "../../decide/kinds/index.ts";
import type { Decided, DecisionOf } from "../../model/decision.ts";
import { KINDS, type Kind, type Refusal } from "../../model/decision.ts";
import type { PlaceReasons } from "../../model/forms.ts";
import type { Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, effectiveSnapshot } from "../../profiles/effective.ts";
import type { Profile } from "../../profiles/profile.ts";
import { changedPods } from "../changed-pods.ts";
import { readAsk } from "../decision-request.ts";
import { decisionDifferences, plain } from "../difference.ts";
import { asReported } from "../replay/new-status.ts";
import { shortDifferences, shortPods } from "../replay/tally.ts";
import type { ChangedAnswer, SnapshotDecisions } from "./report.ts";

/** Pods that a kind is asked about one by one, the first; each takes some milliseconds, and few nodes have more. */
const MAX_PODS = 128;
/** Changed answers that are told of one kind; the others are counted. */
export const MAX_CHANGED = 20;

type Answer = Result<Decided<DecisionOf[Kind]>, Refusal>;

/**
 * Every kind that can be decided on a snapshot, as the kubelet of one version and of another decides it: once, or for each of
 * the pods where it is asked about one. The snapshots differ in the configuration alone; the node is as the new kubelet reports it.
 */
export function snapshotDecisions(
  from: readonly [Snapshot, Profile],
  to: readonly [Snapshot, Profile],
): SnapshotDecisions {
  const before = effectiveSnapshot(...from);
  const after = asReported(before, effectiveSnapshot(...to));
  const all = KINDS.map((kind) => ofKind(kind, before, after));
  return {
    kinds: all.map(({ kind, asked, changed, undecided }) => ({ kind, asked, changed: changed.length, undecided })),
    changed: all.flatMap(({ changed }) => changed.slice(0, MAX_CHANGED)),
  };
}

interface OfKind {
  readonly kind: Kind;
  readonly asked: number;
  readonly changed: readonly ChangedAnswer[];
  readonly undecided: string | null;
}

function ofKind(kind: Kind, before: EffectiveSnapshot, after: EffectiveSnapshot): OfKind {
  const whole = compare(kind, null, before, after);
  if (typeof whole !== "string") return { kind, asked: 1, changed: whole, undecided: null };
  if (whole !== WANTS_POD) return { kind, asked: 0, changed: [], undecided: whole };
  const pods = (before.pods ?? []).slice(0, MAX_PODS).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const each = pods.map((pod) => compare(kind, pod, before, after));
  const told = each.filter((one) => typeof one !== "string");
  const undecided =
    told.length > 0 ? null : (each.find((one) => typeof one === "string") ?? "the snapshot has no pods");
  return { kind, asked: told.length, changed: told.flat(), undecided };
}

const WANTS_POD = "ask.pod";

/** What is another answer, none or one of them; a text: neither version can decide it, and why. */
function compare(
  kind: Kind,
  pod: string | null,
  before: EffectiveSnapshot,
  after: EffectiveSnapshot,
): readonly ChangedAnswer[] | string {
  const read = readAsk(kind, pod === null ? undefined : { pod });
  if (!read.ok) return read.error.detail;
  const { ask, facts } = read.value;
  const asked = pod === null ? [] : [pod];
  const [was, is] = [before, after].map((snapshot) =>
    decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain: "reasons" }),
  ) as [Answer, Answer];
  if (!was.ok) return was.error.needs.includes(WANTS_POD) && pod === null ? WANTS_POD : was.error.message;
  if (!is.ok) {
    const refused = { from: was.value.verdict, to: null, differences: [], differenceCount: 0, reasons: [] };
    return [{ kind, pod, ...shortPods(asked), ...refused, problem: is.error.message }];
  }
  const found = decisionDifferences(was.value, is.value);
  if (found.length === 0) return [];
  const others = changedPods(kind, plain(was.value.decision), plain(is.value.decision));
  return [
    {
      kind,
      pod,
      ...shortPods([...new Set([...asked, ...others])]),
      from: was.value.verdict,
      to: is.value.verdict,
      differences: shortDifferences(found),
      differenceCount: found.length,
      reasons: newReasons(was.value.reasons, is.value.reasons),
      problem: null,
    },
  ];
}

const MAX_PLACES = 5;
const MAX_REASONS = 3;

/** The reasons that are not among the old ones, the first few. */
export function newReasons(old: readonly unknown[], all: readonly PlaceReasons[]): readonly PlaceReasons[] {
  const known = new Set(
    (old as readonly PlaceReasons[]).flatMap(({ at, because }) => because.map((one) => keyOf(at, one))),
  );
  const found = all.flatMap(({ at, because }) => {
    const others = because.filter((one) => !known.has(keyOf(at, one)));
    return others.length === 0 ? [] : [{ at, because: others.slice(0, MAX_REASONS) }];
  });
  return found.slice(0, MAX_PLACES);
}
const keyOf = (at: string, reason: unknown): string => JSON.stringify([at, reason]);
