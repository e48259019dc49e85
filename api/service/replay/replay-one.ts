import type { StoreFailure } from "../../../db/failure.ts";
import type { DecisionRow } from "../../../db/rows.ts";
import type { Store } from "../../../db/store.ts";
import { Lru } from "../../base/cache.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { cacheableInput, isCacheable } from "../../decide/input.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { DecisionOf, Explain, Kind, Verdict } from "../../model/decision.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { namespacedName, type PlaceReasons } from "../../model/forms.ts";
import { specOf } from "../../model/kinds.ts";
import { type EffectiveSnapshot, effectiveSnapshot } from "../../profiles/effective.ts";
import { profileOfPolicy } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { changedPods } from "../changed-pods.ts";
import { readAsk } from "../decision-request.ts";
import { type Difference, differences, MAX_DIFFERENCES } from "../difference.ts";
import { inputProblem, type Problem } from "../problem.ts";
import { asReported, withNewStats, withNewStatus } from "./new-status.ts";
import {
  type Change,
  changed,
  isNothing,
  knownKind,
  parsed,
  postedSnapshot,
  profileOfChange,
  recordedAnswer,
} from "./parsed.ts";
import { partsReader, type SnapshotParts } from "./snapshot-parts.ts";

/** A snapshot to decide on, with the change applied. */
interface Input {
  readonly snapshot: EffectiveSnapshot;
  /** A key that is equal for inputs that agree in everything that cacheable kinds read. Null if unknown. */
  readonly cacheKey: string | null;
}
/** A problem if the new configuration is invalid for the snapshot. Null if the snapshot is no longer stored. */
type FoundInput = Result<Input, Problem> | null;
/** Reads a stored snapshot; `recorded`: the decision's profile. Errors: of the history, and an unreadable snapshot. */
type Inputs = (snapshotId: string, recorded: Profile) => Promise<Result<FoundInput, StoreFailure>>;

/** The cache of inputs: characters (a few of the largest snapshots) and number. */
const INPUTS_LENGTH = 2 * 1024 * 1024;
const MAX_INPUTS = 128;

/** Decodes each snapshot as a whole. */
function inputs(store: Pick<Store, "getSnapshot">, change: Change): Inputs {
  const kept = keptInputs();
  return (id, recorded) => kept(`${recorded.version} ${id}`, () => wholeInput(store, id, change, recorded));
}

/** The input, and the length of its text. */
type ReadInput = Result<{ readonly input: FoundInput; readonly length: number }, StoreFailure>;

/** Caches the inputs that were read last: several kinds are decided on one, and nodes alternate. */
function keptInputs(): (key: string, read: () => Promise<ReadInput>) => Promise<Result<FoundInput, StoreFailure>> {
  const kept = new Lru<string, { readonly input: FoundInput }>(MAX_INPUTS, INPUTS_LENGTH);
  return async (key, read) => {
    const known = kept.get(key);
    if (known !== undefined) return ok(known.input);
    const found = await read();
    if (!found.ok) return found;
    const { input, length } = found.value;
    kept.set(key, { input }, length);
    return ok(input);
  };
}

/** Decodes all of a stored snapshot, so that every fault is reported. */
async function wholeInput(
  store: Pick<Store, "getSnapshot">,
  id: string,
  change: Change,
  profile: Profile,
): Promise<ReadInput> {
  const stored = await store.getSnapshot(id);
  if (!stored.ok) return stored;
  if (stored.value === null) return ok({ input: null, length: 0 });
  const recorded = postedSnapshot(stored.value);
  if (!recorded.ok) return recorded;
  const snapshot = decoded(recorded.value, change, profile);
  return ok({
    input: snapshot.ok ? ok({ snapshot: snapshot.value, cacheKey: null }) : snapshot,
    length: stored.value.body.length,
  });
}

function decoded(
  recorded: Readonly<Record<string, unknown>>,
  change: Change,
  profile: Profile,
): Result<EffectiveSnapshot, Problem> {
  const snapshot = decodeSnapshot(changed(recorded, change, profile));
  if (!snapshot.ok) return err(inputProblem(snapshot.error));
  const after = effectiveSnapshot(snapshot.value, profileOfChange(change, profile));
  if (isNothing(change)) return ok(after);
  const before = decodeSnapshot(recorded);
  return ok(before.ok ? asReported(effectiveSnapshot(before.value, profile), after) : after);
}

const MAX_CONFIGURATIONS = 256;
const CONFIGURATIONS_LENGTH = 2 * 1024 * 1024;
const MAX_NODES = 4096;
/** The most characters of a key; a longer one costs more than it saves. */
const LONGEST_KEY = 2048;

/**
 * A faster `Inputs` for many snapshots of the same nodes: shared parts are decoded once, and at most `length`
 * characters are cached.
 */
function quickInputs(store: Pick<Store, "getSnapshot" | "getSnapshotPieces">, change: Change, length: number): Inputs {
  const kept = keptInputs();
  const partsOf = partsReader(length);
  const inputOf = composer(change);
  const read = async (id: string, recorded: Profile): Promise<ReadInput> => {
    const stored = await store.getSnapshotPieces(id);
    if (!stored.ok) return stored;
    if (stored.value === null) return ok({ input: null, length: 0 });
    const { pieces } = stored.value;
    const parts = await partsOf(pieces);
    if (!parts.ok) return parts;
    const input = parts.value === null ? null : inputOf(parts.value, recorded);
    // decoding the whole snapshot reports the faults
    return input === null
      ? wholeInput(store, id, change, recorded)
      : ok({ input: ok(input), length: pieces.rest.length });
  };
  return (id, recorded) => kept(`${recorded.version} ${id}`, () => read(id, recorded));
}

/** Assembles inputs from decoded parts. Null if the new or the recorded configuration is invalid. */
function composer(change: Change): (parts: SnapshotParts, recorded: Profile) => Input | null {
  const configured = configurations(change);
  const nodes = new Lru<string, Pick<EffectiveSnapshot, "node">>(MAX_NODES);
  return ({ decoded, kubeletConfiguration, cacheKey: parts }, recorded) => {
    const both = configured(kubeletConfiguration, recorded);
    if (both === null) return null;
    const before = { ...decoded, ...both.before };
    const key = `${recorded.version} ${parts} ${JSON.stringify(cacheableInput("allocatable", before)?.stats)}`;
    const cacheKey = key.length > LONGEST_KEY ? null : key;
    if (isNothing(change)) return { snapshot: before, cacheKey };
    const after = { ...decoded, ...both.after };
    const known = cacheKey === null ? undefined : nodes.get(cacheKey);
    const measured = withNewStats(before, after);
    if (known !== undefined) return { snapshot: { ...measured, ...known }, cacheKey };
    const snapshot = withNewStatus(before, measured);
    if (cacheKey !== null) nodes.set(cacheKey, snapshot.node === undefined ? {} : { node: snapshot.node }, 1);
    return { snapshot, cacheKey };
  };
}

interface Configurations {
  readonly before: Pick<EffectiveSnapshot, "kubeletConfiguration">;
  readonly after: Pick<EffectiveSnapshot, "kubeletConfiguration">;
}
/** A posted configuration with and without the change, decoded; few nodes have one of their own. */
function configurations(change: Change): (posted: unknown, recorded: Profile) => Configurations | null {
  const kept = new Lru<string, Configurations | null>(MAX_CONFIGURATIONS, CONFIGURATIONS_LENGTH);
  return (posted, recorded) => {
    const text = `${recorded.version} ${JSON.stringify(posted) ?? ""}`;
    const known = kept.get(text);
    if (known !== undefined) return known;
    const input = { kubeletConfiguration: posted };
    const before = decodeSnapshot(input);
    const after = decodeSnapshot(changed(input, change, recorded));
    const both =
      before.ok && after.ok
        ? {
            before: effectiveSnapshot(before.value, recorded),
            after: effectiveSnapshot(after.value, profileOfChange(change, recorded)),
          }
        : null;
    kept.set(text, both, text.length);
    return both;
  };
}

/** The comparison of a recorded decision with the new one. */
export type Compared = Versions & (DecidedAgain | NotReplayed);
/** The comparison with the whole new answer. */
export type Replayed = Versions &
  ((DecidedAgain & { readonly answer: Answer }) | (NotReplayed & { readonly answer: null }));

/** The kubelet versions of the recorded and of the new decision. */
export interface Versions {
  readonly recordedUnder: string;
  readonly replayedUnder: string;
}
interface DecidedAgain {
  readonly state: "same" | "differs";
  /** The new answer's verdict. */
  readonly verdict: Verdict;
  /** The kubelet's reason, if the decision differs and has one. */
  readonly reason?: string;
  /** At most `MAX_DIFFERENCES`, those with an effect first. */
  readonly differences: readonly Difference[];
  /** True: there are more differences. */
  readonly truncated: boolean;
  /** The pods with different results, NAMESPACE/NAME: the requested pod first, then the node's. */
  readonly pods: readonly string[];
  readonly problem: null;
}
interface NotReplayed {
  /** `refused`: it cannot be decided with the change. `gone`: its snapshot is no longer stored. */
  readonly state: "refused" | "gone";
  /** Why there is no new decision. */
  readonly problem: Problem;
  readonly verdict: null;
  readonly reason?: never;
  readonly differences: readonly [];
  readonly truncated: false;
  /** The pod that the decision was about. */
  readonly pods: readonly string[];
}
interface Answer {
  /** The version of the profile that was used. */
  readonly policyVersion: string;
  readonly decision: DecisionOf[Kind];
  readonly reasons: readonly PlaceReasons[];
  readonly needs: readonly string[];
}

/** Decides a recorded decision again. Errors: of the history, and an unreadable record. */
export type Replayer<R extends Compared = Replayed> = (row: DecisionRow) => Promise<Result<R, StoreFailure>>;

/** Decides recorded decisions again one by one, with reasons. Caches the last snapshots, as several kinds share one. */
export const replayer = (store: Pick<Store, "getSnapshot">, change: Change): Replayer =>
  replayerOf(inputs(store, change), change, (row, { snapshot }) => replayed(row, snapshot, row.explain));

/** The most cached characters of shared snapshot parts, and of answers to compare. */
const KEPT_LENGTH = 2 * 1024 * 1024;
/** The cache size for a process that replays a whole history: enough for a few hundred nodes. */
export const LONG_RUN_LENGTH = 24 * 1024 * 1024;

/** A replayer for consecutive decisions of a history, without reasons. An unchanged node uses its cached answer. */
export function historyReplayer(
  store: Pick<Store, "getSnapshot" | "getSnapshotPieces">,
  change: Change,
  length = KEPT_LENGTH,
): Replayer<Compared> {
  const last = new Lru<string, { readonly body: string; readonly again: Compared }>(Number.POSITIVE_INFINITY, length);
  return replayerOf<Compared>(quickInputs(store, change, length), change, (row, { snapshot, cacheKey }) => {
    const { kind, ask, body } = row;
    // the full answer may contain more than reasons
    const explain = row.explain === "full" ? "full" : "off";
    const question = cacheKey === null || !isCacheable(kind) ? null : `${kind} ${explain} ${ask} ${cacheKey}`;
    const known = question === null ? undefined : last.get(question);
    if (known?.body === body) return ok(known.again);
    const again = replayed(row, snapshot, explain);
    if (!again.ok || question === null) return again;
    const { answer: _, ...kept } = again.value;
    last.set(question, { body, again: kept }, body.length);
    return ok(kept);
  });
}

/** A row of a known kind. */
interface KnownRow extends DecisionRow, Versions {
  readonly kind: Kind;
}

function replayerOf<R extends Compared>(
  inputOf: Inputs,
  change: Change,
  decide: (row: KnownRow, input: Input) => Result<R, StoreFailure>,
): Replayer<R | Replayed> {
  return async (row) => {
    const { id, snapshotId } = row;
    const kind = knownKind(row);
    if (!kind.ok) return kind;
    const recorded = profileOfPolicy(row.policyVersion);
    const replayedUnder = profileOfChange(change, recorded).version;
    const known = { ...row, kind: kind.value, recordedUnder: recorded.version, replayedUnder };
    if (snapshotId === null) return ok(gone(known, `decision \`${id}\` was made without a stored snapshot`));
    const input = await inputOf(snapshotId, recorded);
    if (!input.ok) return input;
    if (input.value === null)
      return ok(gone(known, `snapshot \`${snapshotId}\` of decision \`${id}\` is no longer stored`));
    return input.value.ok ? decide(known, input.value.value) : ok(refused(known, input.value.error));
  };
}

const none = { verdict: null, differences: [], truncated: false, answer: null } as const;
const refused = (row: KnownRow, why: Problem): Replayed => ({
  ...none,
  ...versionsOf(row),
  state: "refused",
  pods: askedPod(row),
  problem: why,
});
const gone = (row: KnownRow, why: string): Replayed => ({
  ...none,
  ...versionsOf(row),
  state: "gone",
  pods: [],
  problem: { code: "snapshot_gone", detail: why },
});
const versionsOf = ({ recordedUnder, replayedUnder }: Versions): Versions => ({ recordedUnder, replayedUnder });
/** The pod that the decision was about; none for a decision about a node, which chooses pods itself. */
const askedPod = ({ kind, pod }: KnownRow): readonly string[] =>
  pod === null || specOf(kind).ask.pod !== "object" ? [] : [namespacedName(pod)];

/** Decides a known row again. Errors: an unreadable ask or answer. */
function replayed(row: KnownRow, snapshot: EffectiveSnapshot, explain: Explain): Result<Replayed, StoreFailure> {
  const { id, kind, ask: askText } = row;
  const what = `decision \`${id}\``;
  const posted = askText === null ? ok(null) : parsed(`ask of ${what}`, askText);
  if (!posted.ok) return posted;
  const asked = readAsk(kind, posted.value);
  if (!asked.ok) return ok(refused(row, asked.error));
  const { ask, facts } = asked.value;
  const decided = decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain });
  if (!decided.ok) {
    const { code, message, needs } = decided.error;
    return ok(refused(row, { code, detail: message, needs }));
  }
  const { decision, reasons, needs, verdict } = decided.value;
  const compared = comparison(row, decision);
  if (!compared.ok) return compared;
  return ok({
    ...versionsOf(row),
    ...compared.value,
    verdict,
    problem: null,
    answer: { policyVersion: snapshot.kubeletConfiguration.profile.policyVersion, decision, reasons, needs },
  });
}

type Comparison = Pick<DecidedAgain, "state" | "reason" | "differences" | "truncated" | "pods">;
const SAME: Comparison = { state: "same", differences: [], truncated: false, pods: [] };

/** Compares a decision with its row. A body begins with its decision, so equal text needs no parsing. */
function comparison(row: KnownRow, decision: DecisionOf[Kind]): Result<Comparison, StoreFailure> {
  const { kind, body } = row;
  const text = JSON.stringify(decision);
  if (body.startsWith(`{"decision":${text},`)) return ok(SAME);
  const recorded = recordedAnswer(row);
  if (!recorded.ok) return recorded;
  const again: unknown = JSON.parse(text);
  const all = differences(recorded.value.decision, again, specOf(kind).hasNoEffect);
  if (all.length === 0) return ok(SAME);
  const reason = specOf(kind).reasonOf?.(decision as never) ?? null;
  return ok({
    state: "differs",
    ...(reason === null ? {} : { reason }),
    differences: all.slice(0, MAX_DIFFERENCES),
    truncated: all.length > MAX_DIFFERENCES,
    pods: [...new Set([...askedPod(row), ...changedPods(kind, recorded.value.decision, again)])],
  });
}
