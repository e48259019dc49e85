import type { Again } from "../../../db/store.ts";
import { ALWAYS_NEW } from "../../decide/input.ts";
import { memo, type PerOwnerCache } from "../../model/cache.ts";
import type { Kind } from "../../model/decision.ts";
import { decodeStored } from "../../model/decode.ts";
import { ok, type Result } from "../../model/result.ts";
import { PARTS, type Snapshot } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/units.ts";
import { PROFILES } from "../../profiles/index.ts";
import { leftOutOfSnapshot } from "../../profiles/unknown-fields.ts";
import type { Answered } from "../evaluate.ts";
import type { StoredSnapshot } from "../evaluation.ts";
import { inputProblem, type Problem, storeProblem } from "../problem.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import type { Keyframe } from "./keyframe.ts";

/** A snapshot that a turn may begin with. */
export interface KnownSnapshot {
  readonly id: string;
  readonly snapshot: Snapshot;
  /** The configuration as it was posted, where decisions leave something of it out; else undefined. */
  readonly configuration: unknown;
  /** The length of its text. */
  readonly characters: number;
}

/** The last decision that a node was answered to one of its questions. */
export interface LastAnswer {
  readonly kind: Kind;
  /** The id in the answer: that of its row, if it has one. */
  readonly id: string;
  /** Whether the history has a row with this id, on which repetitions are counted. */
  readonly isRow: boolean;
  readonly snapshotId: string;
  /** The id that the decision would have as its own row. */
  readonly ownId: string;
  /** When it was decided; null: not yet. */
  readonly decidedAtMs: EpochMs | null;
  /** How often it was decided, and since when. */
  readonly made: Again;
  readonly question: Question;
  readonly answered: Answered;
  /** The length of its text. */
  readonly characters: number;
  /** How many repetitions are not counted in the history yet. */
  readonly uncounted: number;
}

/** Everything that a decision depends on besides the snapshot, and the parts of the snapshot that it reads. */
export interface Question {
  readonly policyVersion: string;
  /** The ask with the history's facts. */
  readonly ask: string | null;
  /** The parts of the snapshot that the kind reads; null: it also reads parts that differ in every snapshot. */
  readonly input: Snapshot | null;
}

/** Knowledge of a node between two turns. */
export interface NodeState {
  readonly node: string;
  readonly current: KnownSnapshot;
  /** Results of decisions about its pods. */
  readonly kept: PerOwnerCache;
  /** The answers by `askKey`. */
  readonly answers: ReadonlyMap<string, LastAnswer>;
  /** The row of the node's newest decision of each kind, on which alone the same again is counted. */
  readonly newest: ReadonlyMap<Kind, string>;
  /** The node's newest snapshot, where it waits for the history; null: it is there. */
  readonly unstored: KnownSnapshot | null;
  /** The texts of the history that its snapshots are stored as ranges of. */
  readonly keyframe: Keyframe | null;
  /** When something about the node was last written to the history. */
  readonly writtenMs: number;
}

/** A snapshot of the history as a turn's beginning. */
export function fromHistory({ id, text }: StoredSnapshot): Result<KnownSnapshot, Problem> {
  const posted = postedSnapshot({ id, body: text });
  if (!posted.ok) return { ok: false, error: storeProblem(posted.error) };
  const decoded = decodeStored(posted.value);
  if (!decoded.ok) return { ok: false, error: inputProblem(decoded.error) };
  const snapshot = withSharedConfiguration(decoded.value);
  return ok({ id, snapshot, configuration: undefined, characters: text.length });
}

/** Bytes of memory for each character of a JSON text that is kept as objects: a guess, somewhat above what was measured. */
const BYTES_PER_CHARACTER = 6;
export const bytesOf = ({ current, answers }: NodeState): number =>
  [current, ...answers.values()].reduce((sum, { characters }) => sum + characters * BYTES_PER_CHARACTER, 0);

/** The maximum number of different configurations that are shared. */
const CONFIGURATIONS = 256;
const configurations = memo(CONFIGURATIONS, (text): { readonly shared: Snapshot["kubeletConfiguration"] | null } => {
  const decoded = decodeStored({ kubeletConfiguration: JSON.parse(text) });
  return { shared: decoded.ok ? decoded.value.kubeletConfiguration : null };
});
/**
 * The snapshot with a shared configuration object: most nodes of a fleet have the same one, and what is derived from
 * it is cached.
 */
export function withSharedConfiguration(snapshot: Snapshot): Snapshot {
  const { kubeletConfiguration } = snapshot;
  if (kubeletConfiguration === undefined) return snapshot;
  const { shared } = configurations(JSON.stringify(kubeletConfiguration));
  return shared === null ? snapshot : { ...snapshot, kubeletConfiguration: shared };
}

/** The part of a posted configuration that has to be kept. */
export const frozenConfiguration = (posted: unknown): unknown =>
  PROFILES.some((profile) => leftOutOfSnapshot({ kubeletConfiguration: posted }, profile).length > 0)
    ? posted
    : undefined;

const NEW: ReadonlySet<string> = new Set(ALWAYS_NEW);
const LASTING = PARTS.filter((part) => !NEW.has(part));
/** Whether only stats, times and counters differ, which are new in each snapshot. */
export const isAsItWas = (before: Snapshot, now: Snapshot): boolean =>
  LASTING.every((part) => before[part] === now[part]);

/** The core is given the same, and so decides the same. */
export const isSameQuestion = (a: Question, b: Question): boolean =>
  a.policyVersion === b.policyVersion &&
  a.ask === b.ask &&
  a.input !== null &&
  b.input !== null &&
  isSameInput(a.input, b.input);

function isSameInput(a: Snapshot, b: Snapshot): boolean {
  if (!isAsItWas(a, b)) return false;
  // these objects are small and newly made each time
  return JSON.stringify(a.stats) === JSON.stringify(b.stats);
}
