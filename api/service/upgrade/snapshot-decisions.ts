import type { Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { Decided, DecisionOf } from "../../model/decision.ts";
import { KINDS, type Kind, type Refusal } from "../../model/decision.ts";
import type { PlaceReasons } from "../../model/forms.ts";
import { specOf } from "../../model/kinds.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, effectiveSnapshot } from "../../profiles/effective.ts";
import type { Profile } from "../../profiles/profile.ts";
import { changedPods, isOther, reasonsOfEffect } from "../changed-pods.ts";
import { readAsk } from "../decision-request.ts";
import { differences, plain } from "../difference.ts";
import { asReported } from "../replay/new-status.ts";
import { shortDifferences, shortPods } from "../replay/tally.ts";
import type { ChangedAnswer, SnapshotDecisions } from "./report.ts";

/** The maximum number of pods for kinds that decide on one pod; each takes some milliseconds. */
const MAX_PODS = 128;
/** The maximum number of changed answers listed per kind; the others are counted. */
const MAX_CHANGED = 20;

type Answer = Result<Decided<DecisionOf[Kind]>, Refusal>;

/**
 * Every kind that can be decided on a snapshot, decided as the kubelets of both versions do: once, or for each pod. The snapshots
 * differ only in the configuration; the node is as the new kubelet reports it.
 */
export function snapshotDecisions(
  from: readonly [Snapshot, Profile],
  to: readonly [Snapshot, Profile],
): SnapshotDecisions {
  const before = effectiveSnapshot(...from);
  const after = asReported(before, effectiveSnapshot(...to));
  const all = KINDS.map((kind) => decisionsOfKind(kind, before, after));
  return {
    kinds: all.map(({ changed, ...kind }) => ({ ...kind, changed: changed.length })),
    changed: all.flatMap(({ changed }) => changed.slice(0, MAX_CHANGED)),
  };
}

/** The results of comparing answers. */
interface Answers {
  readonly changed: readonly ChangedAnswer[];
  /** The number of differences without an effect. */
  readonly kernelDefaults: number;
}
interface KindDecisions extends Answers {
  readonly kind: Kind;
  readonly asked: number;
  readonly undecided: string | null;
}

function decisionsOfKind(kind: Kind, before: EffectiveSnapshot, after: EffectiveSnapshot): KindDecisions {
  const whole = compare(kind, null, before, after);
  if (typeof whole !== "string") return { kind, asked: 1, ...whole, undecided: null };
  if (whole !== WANTS_POD) return { kind, asked: 0, ...SAME, undecided: whole };
  const pods = (before.pods ?? []).slice(0, MAX_PODS).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const each = pods.map((pod) => compare(kind, pod, before, after));
  const compared = each.filter((one) => typeof one !== "string");
  const undecided =
    compared.length > 0 ? null : (each.find((one) => typeof one === "string") ?? "the snapshot has no pods");
  const changed = compared.flatMap((one) => one.changed);
  const kernelDefaults = compared.reduce((sum, one) => sum + one.kernelDefaults, 0);
  return { kind, asked: compared.length, changed, kernelDefaults, undecided };
}

const WANTS_POD = "ask.pod";

const SAME: Answers = { changed: [], kernelDefaults: 0 };
const other = (answer: ChangedAnswer): Answers => ({ changed: [answer], kernelDefaults: 0 });

/** Compares one answer; a text says why neither version can decide it. */
function compare(
  kind: Kind,
  pod: string | null,
  before: EffectiveSnapshot,
  after: EffectiveSnapshot,
): Answers | string {
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
    return other({ kind, pod, ...shortPods(asked), ...refused, problem: is.error.message });
  }
  const { hasNoEffect } = specOf(kind);
  const [recorded, replayed] = [was, is].map(({ value }) => plain(value.decision));
  const found = differences(recorded, replayed, hasNoEffect);
  if (found.length === 0) return SAME;
  if (!isOther(found, hasNoEffect)) return { changed: [], kernelDefaults: 1 };
  const others = changedPods(kind, recorded, replayed);
  return other({
    kind,
    pod,
    ...shortPods([...new Set([...asked, ...others])]),
    from: was.value.verdict,
    to: is.value.verdict,
    differences: shortDifferences(found),
    differenceCount: found.length,
    reasons: newReasons(was.value.reasons, reasonsOfEffect(kind, is.value.reasons, found)),
    problem: null,
  });
}

const MAX_PLACES = 5;
const MAX_REASONS = 3;

/** The first few reasons that are not among the old ones. */
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
