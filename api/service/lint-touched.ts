import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow } from "../../db/rows.ts";
import type { DecisionFilter, Store } from "../../db/store.ts";
import { Lru } from "../base/cache.ts";
import { isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import { fileSystemsOf } from "../decide/eviction/usage.ts";
import { stableParts } from "../decide/input.ts";
import { isOfCommandLine, type LintFinding } from "../decide/lint/finding.ts";
import { lintConfiguration } from "../decide/lint/lint.ts";
import { type Path, stepsOf } from "../documents/inputs/origin.ts";
import { isKind } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { parsed, postedSnapshot, recordedAnswer } from "./replay/parsed.ts";
import { type Compared, historyReplayer, type Replayed, type Replayer, replayer } from "./replay/replay-one.ts";
import { partsReader, type SnapshotParts } from "./replay/snapshot-parts.ts";
import { yieldToEventLoop } from "./task-queue.ts";

/** The configuration that decisions were made with, and its findings on its node. */
interface Recorded {
  /** The configuration as posted. */
  readonly configuration: unknown;
  readonly findings: readonly LintFinding[];
}
/** Finds the recorded findings by a decision's `snapshotId`. Null if the snapshot is not, or no longer, stored. Errors: of the history. */
type RecordedFindings = (snapshotId: string | null) => Promise<Result<Recorded | null, StoreFailure>>;

type Snapshots = Pick<Store, "getSnapshot" | "getSnapshotPieces">;

/** The most cached snapshots: several kinds are decided on one, and nodes alternate. */
const MAX_KEPT = 128;
/** The most cached characters each of shared snapshot parts, of snapshots as read, and of nodes. */
const KEPT_LENGTH = 2 * 1024 * 1024;

/** Lints each node once as long as it does not change, and decodes shared parts of its snapshots once. */
export function recordedFindings(store: Snapshots): RecordedFindings {
  const byNode = new Lru<string, Recorded>(MAX_KEPT, KEPT_LENGTH);
  const partsOf = partsReader(KEPT_LENGTH);
  const ofParts = ({ decoded, kubeletConfiguration, cacheKey }: SnapshotParts): Recorded => {
    const { snapshot, sizes } = stableInput(decoded);
    const key = JSON.stringify([kubeletConfiguration, cacheKey, sizes]);
    const recorded = byNode.get(key) ?? recordedOf(kubeletConfiguration, snapshot);
    byNode.set(key, recorded, key.length);
    return recorded;
  };
  return async (id) => {
    if (id === null) return ok(null);
    const stored = await store.getSnapshotPieces(id);
    if (!stored.ok) return stored;
    const parts = stored.value === null ? ok(null) : await partsOf(stored.value.pieces);
    if (!parts.ok) return parts;
    return parts.value === null ? ofWhole(store, id) : ok(ofParts(parts.value));
  };
}

/** Reduces a snapshot to what stays the same while the node does; of its stats only the sizes. The rest cannot affect a finding. */
function stableInput(decoded: Snapshot): { readonly snapshot: Snapshot; readonly sizes: Snapshot["stats"] } {
  const snapshot = stableParts(decoded);
  const node = decoded.stats?.node;
  if (node === undefined) return { snapshot, sizes: undefined };
  const sizeOf = (fs: typeof node.fs) => fs && { capacityBytes: fs.capacityBytes, inodes: fs.inodes };
  const [fs, imageFs] = [sizeOf(node.fs), sizeOf(node.runtime?.imageFs)];
  const fileSystems = fs === undefined || imageFs === undefined ? node.fileSystems : fileSystemsOf(node);
  const rlimit = node.rlimit && { maxpid: node.rlimit.maxpid };
  const sizes = { node: { fs, runtime: { imageFs }, fileSystems, rlimit, swap: node.swap } };
  return { snapshot: { ...snapshot, stats: sizes }, sizes };
}

/** The store with the last snapshots cached, for several readers of the same ones. */
function keptPieces(store: Snapshots): Snapshots {
  const kept = new Lru<string, Awaited<ReturnType<Snapshots["getSnapshotPieces"]>>>(MAX_KEPT, KEPT_LENGTH);
  return {
    getSnapshot: (id) => store.getSnapshot(id),
    getSnapshotPieces: async (id) => {
      const known = kept.get(id);
      if (known !== undefined) return known;
      const read = await store.getSnapshotPieces(id);
      kept.set(id, read, read.ok ? (read.value?.pieces.rest.length ?? 1) : 1);
      return read;
    },
  };
}

/** Reads a whole snapshot, if it cannot be read part by part. */
async function ofWhole(store: Snapshots, id: string): Promise<Result<Recorded | null, StoreFailure>> {
  const stored = await store.getSnapshot(id);
  if (!stored.ok) return stored;
  if (stored.value === null) return ok(null);
  const body = postedSnapshot(stored.value);
  if (!body.ok) return body;
  const { kubeletConfiguration, ...rest } = body.value;
  const snapshot = decodeSnapshot(rest);
  return ok(recordedOf(kubeletConfiguration, snapshot.ok ? snapshot.value : undefined));
}

const recordedOf = (configuration: unknown, snapshot: Snapshot | undefined): Recorded => ({
  configuration,
  findings: isObject(configuration) ? lintConfiguration(configuration, snapshot) : [],
});

type HistoryAnswer<T> = Promise<Result<T, StoreFailure>>;

/** Checks one finding against recorded decisions. Errors: of the history. */
interface FindingCheck {
  /** Whether the decision's input has the same finding, by code and field; otherwise the finding did not affect it. */
  readonly isIn: (recorded: Recorded) => boolean;
  /** Whether the finding, which the input has, affected the decision: see `touchedFindings`. */
  readonly isTouched: (row: DecisionRow, recorded: Recorded, current: CurrentDecisions) => HistoryAnswer<boolean>;
}

function findingCheckOf(store: Snapshots, { code, field, fix }: LintFinding): FindingCheck {
  const path = namesIn(field);
  const changes = changesBy(store, fix ?? withoutAt(path));
  const same = (finding: LintFinding): boolean => finding.code === code && finding.field === field;
  return {
    isIn: ({ findings }) => findings.some(same),
    isTouched: async (row, { configuration, findings }, current) => {
      if (fix !== null) return changes(row, current);
      const message = findings.find(same)?.message ?? "";
      const isSaid = await current.says(row, message);
      if (!isSaid.ok || isSaid.value) return isSaid;
      return isThere(configuration, path) ? changes(row, current) : ok(false);
    },
  };
}

/**
 * Recorded decisions as they would be made today without a change, so that differences of an older version do not count. Several
 * findings need the same one in a row, so the last is cached.
 */
class CurrentDecisions {
  readonly #compared: Replayer<Compared>;
  readonly #whole: Replayer;
  constructor(store: Snapshots) {
    this.#compared = lastKept(historyReplayer(store, {}));
    this.#whole = lastKept(replayer(store, {}));
  }
  compared(row: DecisionRow): HistoryAnswer<Compared> {
    return this.#compared(row);
  }
  whole(row: DecisionRow): HistoryAnswer<Replayed> {
    return this.#whole(row);
  }
  /** Whether the answer has a message, such as a start error. */
  async says(row: DecisionRow, message: string): HistoryAnswer<boolean> {
    const text = JSON.stringify(message).slice(1, -1);
    const now = await this.#compared(row);
    if (!now.ok) return now;
    if (now.value.state === "same") {
      // a quick check without parsing: most rows do not contain it
      if (!row.body.includes(text)) return ok(false);
      const recorded = recordedAnswer(row);
      return recorded.ok ? ok(JSON.stringify(recorded.value.decision).includes(text)) : recorded;
    }
    const again = await this.#whole(row);
    if (!again.ok) return again;
    const { answer, problem } = again.value;
    return ok(JSON.stringify(answer?.decision ?? problem).includes(text));
  }
}

function lastKept<R extends Compared>(replay: Replayer<R>): Replayer<R> {
  const last = new Lru<string, Result<R, StoreFailure>>(1);
  return async (row) => {
    const found = last.get(row.id) ?? (await replay(row));
    last.set(row.id, found);
    return found;
  };
}

/** Whether the patch would change a decision. */
function changesBy(
  store: Snapshots,
  patch: unknown,
): (row: DecisionRow, current: CurrentDecisions) => HistoryAnswer<boolean> {
  const change = { kubeletConfigurationPatch: patch };
  const compared = historyReplayer(store, change);
  const whole = replayer(store, change);
  return async (row, current) => {
    const before = await current.compared(row);
    if (!before.ok) return before;
    const after = await compared(row);
    if (!after.ok) return after;
    if (before.value.state !== "differs" || after.value.state !== "differs")
      return ok(before.value.state !== after.value.state);
    // both differ from the record, so the two answers are compared
    const [was, is] = [await current.whole(row), await whole(row)];
    if (!was.ok) return was;
    if (!is.ok) return is;
    return ok(JSON.stringify(was.value.answer?.decision) !== JSON.stringify(is.value.answer?.decision));
  };
}

/** The names in a field's path up to a list: a merge patch cannot change a list's elements, so a list is removed as a whole. */
function namesIn(field: string): readonly string[] {
  const steps: Path = stepsOf(field);
  const end = steps.findIndex((step) => typeof step === "number");
  return (end === -1 ? steps : steps.slice(0, end)).map(String);
}
const withoutAt = (path: readonly string[]): unknown =>
  path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), null);
function isThere(configuration: unknown, path: readonly string[]): boolean {
  let at = configuration;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return false;
    at = at[name];
  }
  return true;
}

/** The maximum number of decisions that are checked, newest first. */
export const MAX_TOUCHED = 1000;
/** The sizes of the windows of history that are read at once: the first ones are small, as there may be little time. */
const FIRST_WINDOW = 16;
const WINDOW = 250;
/** The time after which counting stops and reports how many were checked. Waiting does not count. */
const BUDGET_MS = 3000;
/** The longest time including waiting, as a multiple of that time. */
const MAX_WAITED = 3;
/** Deciding blocks the thread, so it pauses this often, ms. */
const TIME_SLICE_MS = 5;

export interface Touched {
  /** Recorded decisions that the finding affected: see `touchedFindings`. */
  readonly decisions: number;
  /** The number of recorded decisions that were checked, newest first. */
  readonly of: number;
}
/** A finding with its count; null if the finding is about no field, or there is no history. */
export type TouchedFinding = LintFinding & { readonly touched: Touched | null };

type TouchedStore = Pick<Store, "listDecisions" | "streamDecisions" | "getSnapshot" | "getSnapshotPieces">;

/**
 * Counts the recorded decisions that each finding affected. A decision counts only if its own configuration has the same finding
 * (code and field) on its node. With a patch: if the patch would change the decision. Without one: if the answer has the finding's
 * message, such as a start error, or would differ without the field. Changes between program versions do not count. Limited in
 * decisions and time; if aborted, it reports the decisions checked so far. Errors: of the history.
 */
export async function touchedFindings(
  store: TouchedStore,
  findings: readonly LintFinding[],
  filter: Pick<DecisionFilter, "node">,
  budgetMs = BUDGET_MS,
  signal?: AbortSignal,
): Promise<Result<readonly TouchedFinding[], StoreFailure>> {
  const counted = new Map<string, Counted>();
  const kept = keptPieces(store);
  for (const finding of findings) {
    const key = keyOf(finding);
    if (key !== null && !counted.has(key)) counted.set(key, { check: findingCheckOf(kept, finding), decisions: 0 });
  }
  const context: TouchedContext = {
    recordedOf: recordedFindings(kept),
    current: new CurrentDecisions(kept),
    all: [...counted.values()],
  };
  const of =
    counted.size === 0 ? ok(0) : await countTouched(newestFirst(store, filter), context, clock(budgetMs, signal));
  if (!of.ok) return of;
  const touchedOf = (finding: LintFinding): Touched | null => {
    const one = counted.get(keyOf(finding) ?? "");
    return one === undefined ? null : { decisions: one.decisions, of: of.value };
  };
  return ok(findings.map((finding) => ({ ...finding, touched: touchedOf(finding) })));
}

/** Findings with the same key affect the same decisions. Null for a finding about no field. */
const keyOf = ({ fix, code, field }: LintFinding): string | null =>
  field === "$" || isOfCommandLine({ field }) ? null : JSON.stringify([code, field, fix]);

interface Counted {
  readonly check: FindingCheck;
  decisions: number;
}

interface TouchedContext {
  readonly recordedOf: RecordedFindings;
  readonly current: CurrentDecisions;
  readonly all: readonly Counted[];
}

/** Checks the findings against recorded decisions and counts those that they affected. */
async function countTouched(
  rows: AsyncIterable<Result<DecisionRow, StoreFailure>>,
  context: TouchedContext,
  isTimeUp: () => Promise<boolean>,
): Promise<Result<number, StoreFailure>> {
  let of = 0;
  for await (const row of rows) {
    // an unreadable row is skipped, like one without a stored snapshot
    if (!row.ok && row.error.isRow) continue;
    if (!row.ok) return row;
    if (of >= MAX_TOUCHED || ((await isTimeUp()) && of > 0)) break;
    const isCounted = await countRow(row.value, context);
    if (!isCounted.ok && !isCounted.error.isRow) return isCounted;
    if (isCounted.ok && isCounted.value) of++;
  }
  return ok(of);
}

/** Checks one decision; false if its snapshot is no longer stored. Errors: of the history, and a damaged decision. */
async function countRow(
  row: DecisionRow,
  { recordedOf, current, all }: TouchedContext,
): Promise<Result<boolean, StoreFailure>> {
  const recorded = await recordedOf(row.snapshotId);
  if (!recorded.ok) return recorded;
  if (recorded.value === null) return ok(false);
  const { value } = recorded;
  const some = all.filter(({ check }) => check.isIn(value));
  if (some.length === 0) return ok(isReadable(row));
  const before = await current.compared(row);
  if (!before.ok) return before;
  for (const one of some) {
    const isTouched = await one.check.isTouched(row, value, current);
    if (!isTouched.ok && !isTouched.error.isRow) return isTouched;
    if (isTouched.ok && isTouched.value) one.decisions++;
  }
  return ok(true);
}

/** Whether a recorded decision can be decided again. */
const isReadable = (row: DecisionRow): boolean =>
  isKind(row.kind) && recordedAnswer(row).ok && (row.ask === null || parsed("ask", row.ask).ok);

/** Returns whether the time is up, and yields the thread now and then. */
function clock(budgetMs: number, signal: AbortSignal | undefined): () => Promise<boolean> {
  const started = performance.now();
  let spent = 0;
  let slice = started;
  return async () => {
    const now = performance.now();
    if (now - slice > TIME_SLICE_MS) {
      spent += now - slice;
      await yieldToEventLoop();
      slice = performance.now();
    }
    if (signal?.aborted === true) return true;
    return spent + performance.now() - slice > budgetMs || performance.now() - started > budgetMs * MAX_WAITED;
  };
}

/** Reads windows of time from the newest: within each, a stream reads whole rows, oldest first. */
async function* newestFirst(
  store: TouchedStore,
  filter: Pick<DecisionFilter, "node">,
): AsyncGenerator<Result<DecisionRow, StoreFailure>> {
  let untilMs: number | undefined;
  for (let count = 0; count < MAX_TOUCHED; ) {
    const range = untilMs === undefined ? filter : { ...filter, untilMs };
    const limit = Math.min(Math.max(FIRST_WINDOW, count), WINDOW, MAX_TOUCHED - count);
    const page = await store.listDecisions({ ...range, limit });
    if (!page.ok) return yield page;
    const oldest = page.value.items.at(-1);
    if (oldest === undefined) return;
    const rows: Result<DecisionRow, StoreFailure>[] = [];
    for await (const row of store.streamDecisions(range, { atMs: oldest.decidedAtMs, seq: -1 })) {
      rows.push(row);
      // many decisions may have the same time
      if (rows.length > MAX_TOUCHED) rows.shift();
    }
    count += rows.length;
    yield* rows.reverse();
    untilMs = oldest.decidedAtMs;
  }
}
