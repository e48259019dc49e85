import type { Repetition } from "../../../db/store.ts";
import type { PerOwnerCache } from "../../base/cache.ts";
import { fieldsOf } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { STABLE_PARTS } from "../../decide/input.ts";
import type { Kind } from "../../model/decision.ts";
import { decodeStored } from "../../model/decode.ts";
import { PARTS, type Snapshot } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/units.ts";
import { PROFILES } from "../../profiles/index.ts";
import { leftOutOfSnapshot } from "../../profiles/unknown-fields.ts";
import { canonicalInSegments, type Ids, JsonText, type Segmented, textOfPart, textsOf } from "../canonical.ts";
import { type AnswerOutcome, decodedSnapshot, nodeOf } from "../evaluate.ts";
import type { SnapshotHead, StoredSnapshot } from "../evaluation.ts";
import { inputProblem, type Problem, storeProblem } from "../problem.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import type { DecisionKeyframe } from "./decision-pieces.ts";
import type { Keyframe } from "./keyframe.ts";
import { decodeShared, withSharedParts } from "./shared-parts.ts";
import { StatsBuffers, type StatsBytes, statsText } from "./stats-bytes.ts";

/** What a turn's decisions are about. */
export interface TurnInput {
  readonly snapshot: Snapshot;
  /** The configuration as it was posted, if decisions leave out part of it; else undefined. */
  readonly configuration: unknown;
}

/** A snapshot that a turn may start from. */
export interface KnownSnapshot extends Pick<TurnInput, "configuration"> {
  readonly id: string;
  readonly withoutStats: Omit<Snapshot, "stats">;
  /** Nearly every turn replaces them, often unread. */
  readonly stats: StatsBytes | undefined;
  /** The length of its text. */
  readonly characters: number;
}

/** The node's last decision for one question. */
export interface LastAnswer {
  readonly kind: Kind;
  /** The id in the answer: that of its row, if it has one. */
  readonly id: string;
  /** Whether the history has a row with this id that counts repetitions. */
  readonly isRow: boolean;
  readonly snapshotId: string;
  /** The id that the decision would have as its own row. */
  readonly ownId: string;
  /** When the decision was made; null if it is being made. */
  readonly decidedAtMs: EpochMs | null;
  /** How often the decision was made, and since when. */
  readonly made: Repetition;
  readonly question: Question;
  readonly answered: AnswerOutcome;
  /** The length of its text. */
  readonly characters: number;
  /** How many repetitions the history does not count yet. */
  readonly uncounted: number;
  /** The text in the history that the row refers to by ranges; null if it does not. */
  readonly keyframe: DecisionKeyframe | null;
}

/** Everything besides the snapshot that a decision depends on, and the parts of the snapshot that it reads. */
export interface Question {
  readonly policyVersion: string;
  /** The ask with the history's facts. */
  readonly ask: string | null;
  /** The parts of the snapshot that the kind reads; null if it also reads parts that differ in every snapshot. */
  readonly input: Snapshot | null;
}

/** What is known about a node between two turns. */
export interface NodeState {
  readonly node: string;
  readonly current: KnownSnapshot;
  /** Whether the current snapshot is in the history or will be: it is not after a turn of which nothing was recorded. */
  readonly isCurrentKept: boolean;
  /** Cached results of decisions about its pods. */
  readonly kept: PerOwnerCache;
  /** The last answers by the key of their asks. */
  readonly answers: ReadonlyMap<string, LastAnswer>;
  /** The row of the node's newest decision of each kind; only on these are repetitions counted. */
  readonly newest: ReadonlyMap<Kind, string>;
  /** The node's newest snapshot if it is not written to the history yet; else null. */
  readonly unstored: KnownSnapshot | null;
  /** The texts in the history that the node's snapshots refer to by ranges. */
  readonly keyframe: Keyframe | null;
  /** When something about the node was last written to the history. */
  readonly writtenMs: number;
  /** When its last turn was taken. */
  readonly takenMs: number;
}

/** Whether something about the node is not written to the history yet. */
export const hasUnwritten = ({ unstored, answers }: NodeState): boolean =>
  unstored !== null || Array.from(answers.values()).some(({ uncounted }) => uncounted > 0);

/** A posted snapshot as the start of a turn. */
export function fromPosted(posted: unknown): Result<TurnInput, Problem> {
  const decoded = decodeShared(posted, "snapshot");
  if (!decoded.ok) return err(inputProblem(decoded.error));
  const configuration = frozenConfiguration(fieldsOf(posted)["kubeletConfiguration"]);
  return ok({ snapshot: decoded.value, configuration });
}

/** A stored snapshot as the start of a turn. */
export function fromHistory({ id, text }: StoredSnapshot): Result<KnownSnapshot, Problem> {
  const posted = postedSnapshot({ id, body: text });
  if (!posted.ok) return err(storeProblem(posted.error));
  const decoded = decodeStored(posted.value);
  if (!decoded.ok) return err(inputProblem(decoded.error));
  const snapshot = withSharedParts(decoded.value);
  return ok(
    knownSnapshot({ snapshot, configuration: undefined }, { id, ...canonicalInSegments(snapshot) }, new StatsBuffers()),
  );
}

/** What is kept of a turn's snapshot. `buffers`: for its stats. */
export function knownSnapshot(
  { snapshot, configuration }: TurnInput,
  { id, length, segments }: Pick<Segmented, "length" | "segments"> & { readonly id: string },
  buffers: StatsBuffers,
): KnownSnapshot {
  const { stats, ...withoutStats } = snapshot;
  const segment = stats && segments.find(({ of }) => of === stats);
  return { id, withoutStats, stats: segment && buffers.write(segment.text), configuration, characters: length };
}

/** The input with those parts of the last snapshot that are equal, since the results for these objects are known. */
export function withKnownParts(
  { snapshot, configuration }: TurnInput,
  { withoutStats: last }: KnownSnapshot,
): TurnInput {
  const before: Snapshot = last;
  const parts: Partial<Record<keyof Snapshot, unknown>> = { ...snapshot };
  for (const part of STABLE_PARTS) {
    if (before[part] === undefined || snapshot[part] === undefined) continue;
    const isEqual =
      part === "pods"
        ? isSameList(before.pods, snapshot.pods)
        : textOfPart(before[part]) === JSON.stringify(snapshot[part]);
    if (isEqual) parts[part] = before[part];
  }
  return { snapshot: parts as Snapshot, configuration };
}

const isSameList = (a: readonly unknown[] = [], b: readonly unknown[] = []): boolean =>
  a.length === b.length && a.every((entry, i) => entry === b[i]);

/** The buffers of a replaced state that the next one does not use. */
export function unusedBuffers(
  { current, unstored }: Pick<NodeState, "current" | "unstored">,
  next: Pick<NodeState, "current" | "unstored">,
): readonly StatsBytes["buffer"][] {
  const buffersOf = (...snapshots: readonly (KnownSnapshot | null)[]) =>
    new Set(snapshots.flatMap((snapshot) => snapshot?.stats?.buffer ?? []));
  const inUse = buffersOf(next.current, next.unstored);
  return [...buffersOf(current, unstored)].filter((buffer) => !inUse.has(buffer));
}

/** The snapshot with its stats. */
export function wholeSnapshot({ withoutStats, stats }: KnownSnapshot): Snapshot {
  if (stats === undefined) return withoutStats;
  const decoded = decodeStored({ stats: JSON.parse(statsText(stats)) });
  if (!decoded.ok) throw new Error("stats that were decoded before cannot be decoded again");
  return inOrder({ ...withoutStats, stats: decoded.value.stats });
}

/** A snapshot as a turn stores it. */
export type SegmentedSnapshot = SnapshotHead & Segmented;
export async function segmentedSnapshot(snapshot: Snapshot, ids: Ids): Promise<SegmentedSnapshot> {
  const form = canonicalInSegments(snapshot);
  return decodedSnapshot(snapshot, await ids(textsOf(form.segments), nodeOf(snapshot)), form);
}

/** The stored form of a known snapshot; its stats are not read for it. */
export function storedForm({ id, withoutStats, stats }: KnownSnapshot): SegmentedSnapshot {
  const text = stats === undefined ? undefined : new JsonText(statsText(stats));
  const form = canonicalInSegments(inOrder({ ...withoutStats, stats: text }));
  return decodedSnapshot(withoutStats, id, form);
}

/** The existing members in the canonical order. */
export function inOrder(parts: { readonly [P in keyof Snapshot]?: unknown }): Snapshot {
  const snapshot: Partial<Record<keyof Snapshot, unknown>> = {};
  for (const part of PARTS) if (parts[part] !== undefined) snapshot[part] = parts[part];
  return snapshot as Snapshot;
}

/** Bytes of memory per character of a JSON text that is cached as objects: an estimate, somewhat above what was measured. */
const BYTES_PER_CHARACTER = 3;
export function bytesOf({ current, answers }: NodeState): number {
  const asText = current.stats?.length ?? 0;
  const asObjects = [current, ...answers.values()].reduce((sum, { characters }) => sum + characters, -asText);
  return asObjects * BYTES_PER_CHARACTER + (current.stats?.buffer.length ?? 0);
}

/** The time after a node's last turn in which its state keeps its place in memory, ms. */
const IN_USE_MS = 5 * 60_000;
export const isInUse = (old: NodeState, newest: NodeState): boolean => newest.takenMs - old.takenMs < IN_USE_MS;

/** The posted configuration if it has to be stored: if decisions leave out part of it. */
export const frozenConfiguration = (posted: unknown): unknown =>
  PROFILES.some((profile) => leftOutOfSnapshot({ kubeletConfiguration: posted }, profile).length > 0)
    ? posted
    : undefined;

/** Whether only stats, times and counters differ, which are new in every snapshot. */
export const isAsItWas = (before: Snapshot, now: Snapshot): boolean =>
  STABLE_PARTS.every((part) => before[part] === now[part]);

/** Whether the decision's input is the same, so that the decision is too. */
export const isSameQuestion = (a: Question, b: Question): boolean =>
  a.policyVersion === b.policyVersion &&
  a.ask === b.ask &&
  a.input !== null &&
  b.input !== null &&
  isSameInput(a.input, b.input);

function isSameInput(a: Snapshot, b: Snapshot): boolean {
  if (!isAsItWas(a, b)) return false;
  // these objects are small and created anew each time
  return JSON.stringify(a.stats) === JSON.stringify(b.stats);
}
