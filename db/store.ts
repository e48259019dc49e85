import type { Result } from "../api/base/result.ts";
import type { Kind } from "../api/model/decision.ts";
import type { ExportRow } from "../api/model/export-row.ts";
import type { StoreFailure } from "./failure.ts";
import type {
  Cursor,
  DecisionHead,
  DecisionRow,
  FleetRow,
  HourRow,
  NodeRow,
  OutcomeFilter,
  OutcomePage,
  OutcomeQuery,
  OutcomeRow,
  OutcomeTally,
  RemovalPage,
  RemovalQuery,
  RemovalSummary,
  Removals,
  SnapshotInPieces,
  SnapshotRow,
  StreamedDecision,
  StreamFailure,
  Tally,
  TokenRow,
} from "./rows.ts";

/** A node's report of how it carried out a decision; `body` is JSON text. The node is the decision's. */
export interface ResultRow {
  readonly id: string;
  /** The actuator's counter: results of one decision are listed in its order. */
  readonly seq: number;
  /** Steps that changed something, or in a dry run would; rows of earlier versions count those too that had nothing to change. */
  readonly okCount: number;
  readonly failedCount: number;
  readonly atMs: number;
  readonly body: string;
}

/** A part of the nodes, at most `limit` of them. */
type NodeRange =
  /** Nodes after a name, or the first ones. */
  | { readonly limit: number; readonly after?: string }
  /** Nodes before a name, the nearest first. */
  | { readonly limit: number; readonly before: string };

/** `scope` is the token's id, or `anonymous`: two callers never share a key. */
export interface IdempotencyKey {
  readonly key: string;
  readonly scope: string;
  readonly requestHash: string;
}
interface IdempotencyRow extends IdempotencyKey {
  readonly decisionId: string;
}

export interface Recording {
  readonly decision: DecisionRow;
  readonly snapshot?: SnapshotRow;
  /** Facts of the decision's node: see `writeFacts`. A repeated decision does not write them again. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** JSON: what the fleet page shows of the decision while it is the newest of its kind (`KindSpec.summaryOf`). */
  readonly summary?: string;
  /** The decision's removals. A repeated decision does not list them again. */
  readonly removals?: Removals;
  readonly idempotency?: IdempotencyKey;
}

/**
 * `fresh`: the row is new. `decisionId`: the decision that answers the request: an earlier one if the idempotency key was used
 * before, or if the decision repeats it. `conflict`: that key belongs to a request with another
 * hash, and the decision was not stored.
 */
export interface Recorded {
  readonly fresh: boolean;
  readonly decisionId: string;
  readonly conflict: boolean;
  /** Present if the decision repeats the node's newest of its kind and was counted there. */
  readonly again?: Repetition;
}
export interface Repetition {
  /** The first time included. */
  readonly times: number;
  readonly firstAtMs: number;
  readonly firstSnapshotId: string | null;
}

/** Repetitions of a decision of the node, which the sender has recognised. */
export interface RepeatCount {
  readonly kind: string;
  readonly decisionId: string;
  /** The number of repetitions, at least 1. */
  readonly times: number;
  readonly lastAtMs: number;
  /** A snapshot that is stored, or that is part of the turn. */
  readonly lastSnapshotId: string | null;
  /** The id that the last repetition would have as its own row; the same id is not counted again. */
  readonly lastId: string;
}
/** Everything that one request of a node changes in the history. */
export interface NodeTurn {
  readonly node: string;
  readonly atMs: number;
  /** Snapshots of this node, the newest last. */
  readonly snapshots: readonly SnapshotRow[];
  readonly decisions: readonly Omit<Recording, "snapshot">[];
  readonly again: readonly RepeatCount[];
}
export interface RecordedTurn {
  /** The recorded decisions, in the order of the turn. */
  readonly decisions: readonly Recorded[];
  /**
   * How often each decision was made so far, in the order of the turn. Null: its row is no longer the node's newest of its
   * kind, and nothing was counted.
   */
  readonly again: readonly (number | null)[];
  /** Ids of removed texts that pieces refer to. If there are any, nothing was written: send the texts themselves. */
  readonly missing: readonly string[];
}

/** Half-open: `sinceMs` <= decidedAtMs < `untilMs`; a repeated decision matches with any time from its first to its last. */
export interface DecisionFilter {
  readonly node?: string;
  readonly kind?: Kind;
  readonly verdict?: string;
  readonly reason?: string;
  /** A uid, a `namespace/name`, or a name. */
  readonly pod?: string;
  /** The kubelet version of the policy that decided, such as `1.36`. */
  readonly kubelet?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}
export interface DecisionQuery extends DecisionFilter {
  /** 1 to `MAX_PAGE`; other values are clamped. */
  readonly limit: number;
  readonly pageToken?: string;
}
export const MAX_PAGE = 500;

interface DecisionPage {
  /** Newest first, by the first time that they were made. */
  readonly items: readonly DecisionHead[];
  readonly nextPageToken: string | null;
}

/** The minimum time that a snapshot without a decision is stored: its sender may be about to request one. */
export const SNAPSHOT_GRACE_MS = 10 * 60 * 1000;
/** The minimum time that a silent node is stored, however short its history is. */
export const NODE_GRACE_MS = 7 * 24 * 3600 * 1000;

export interface Retention {
  readonly nowMs: number;
  /** Decisions older than this go, by the last time that they were made. */
  readonly maxAgeMs?: number;
  /** The maximum number of each node's newest decisions and of its newest outcomes. */
  readonly maxRowsPerNode?: number;
  /** Removals go by the same age; of each node's, only this many of the newest of each kind stay. */
  readonly maxRemovalsPerNode?: number;
  /**
   * Nothing is removed by age if the clock is further than this ahead of the last sweep: see `Pruned.held`. Default:
   * no limit.
   */
  readonly maxLeapMs?: number;
  /** Transactions for each kind of row; the rest is left for the next call. Default: no limit. */
  readonly maxSlices?: number;
}
/** Returned space and space that cannot be returned, in bytes. */
export interface VacuumResult {
  readonly freedBytes: number;
  /** Free space that is not returned until the store is compacted. */
  readonly stuckBytes: number;
}

/** The rows that `prune` removed, and the space that it gave back. */
export interface Pruned extends VacuumResult {
  readonly decisions: number;
  readonly outcomes: number;
  readonly removals: number;
  readonly snapshots: number;
  /** Names of silent nodes that were removed. */
  readonly nodes: readonly string[];
  /** False: `maxSlices` were used up, and more must be removed. */
  readonly isDone: boolean;
  /** Why nothing went by age; null: it did, or nothing is too old. */
  readonly held: ClockLeap | null;
}
/**
 * The clock leapt further than `maxLeapMs` since `sinceMs`: it or the earlier clock is wrong, or there was no sweep
 * for long.
 */
export interface ClockLeap {
  readonly sinceMs: number;
  /** Number of decisions (out of `of`) that are too old by this clock. At most 100,000 are counted. */
  readonly decisions: number;
  readonly of: number;
}

/** The part of a history that moves: half-open, `sinceMs` <= a row's time < `untilMs`. Nodes move as they are now. */
export interface ExportFilter {
  readonly node?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Includes tokens: names, rights and hashes. */
  readonly tokens?: true;
}
/** Rows that are to be imported together: what a row needs, and the row. */
export interface ExportedRows {
  readonly rows: readonly ExportRow[];
  /** The place after these rows, where an export continues. */
  readonly place: string;
  /** When the decision was made; null: the rows are not about a decision. */
  readonly atMs: number | null;
  /** 0 to 1, of an export that does not go by time. */
  readonly progress?: number;
}
/** Rows by their type. */
export type ImportCounts = Readonly<Partial<Record<ExportRow["type"], number>>>;
export interface ImportedRows {
  readonly added: ImportCounts;
  /** Existing rows, which changed only if the import is newer: see `importRows`. */
  readonly known: ImportCounts;
}

type StoreResult<T> = Promise<Result<T, StoreFailure>>;

/** The part of the store for tokens. */
export interface TokenStore {
  /** `fresh` is false if the id or the hash already exists. */
  createToken(token: TokenRow): StoreResult<{ readonly fresh: boolean }>;
  listTokens(): StoreResult<readonly TokenRow[]>;
  /** `revoked` is false when there is no such active token. */
  revokeToken(id: string, nowMs: number): StoreResult<{ readonly revoked: boolean }>;
  /** Active tokens only. */
  findToken(id: string): StoreResult<TokenRow | null>;
  countTokens(): StoreResult<{ readonly active: number; readonly revoked: number }>;
  /** Removes the revoked tokens, if no other is active; `forgotten`: how many. Afterwards the store is as if there had never been one. */
  forgetRevokedTokens(): StoreResult<{ readonly forgotten: number }>;
}

/** Up to where the decision log is delivered. */
export interface LogCursor {
  /** All decisions up to this one, in the order of storing, are delivered. */
  readonly deliveredSeq: number;
  /** Decisions that were removed undelivered and are not reported yet. */
  readonly lost: number;
}

/** The part of the store for the decision log: the decisions themselves are its buffer, with a stored position. */
export interface LogStore {
  /**
   * Takes or renews the right to deliver, for `leaseMs` by the database's clock; the very first call begins the log,
   * with later decisions. `reported`: how many of `lost` were reported. Null: another process delivers.
   */
  holdLog(holder: string, leaseMs: number, reported: number): StoreResult<LogCursor | null>;
  /** Returns the last number up to which all decisions can be read, or will never exist. */
  settledSeq(): StoreResult<number>;
  /** Streams decisions after `afterSeq` up to `untilSeq` in the order of storing, like `streamDecisions`. */
  streamLog(afterSeq: number, untilSeq: number): AsyncIterable<Result<StreamedDecision, StreamFailure>>;
  /**
   * Advances the place; false: nothing changed, since another process delivers, or the place is no longer `fromSeq`.
   */
  moveLog(holder: string, fromSeq: number, toSeq: number): StoreResult<{ readonly moved: boolean }>;
  /** Lets another process deliver at once. */
  releaseLog(holder: string): StoreResult<null>;
}

/**
 * The history. Every method returns a result, even if the disk is full, the database is locked or broken, or the
 * network is down.
 */
export interface Store extends TokenStore, LogStore {
  /**
   * Records in one atomic write; on return the rows survive a crash. A decision that equals the node's newest of its
   * kind in all but its snapshot and its time is counted on that row; one with removals has its own row.
   */
  record(recording: Recording): StoreResult<Recorded>;
  /** Records a turn in one atomic write; `record` is a turn with one decision. */
  recordTurn(turn: NodeTurn): StoreResult<RecordedTurn>;
  putSnapshot(snapshot: SnapshotRow): StoreResult<{ readonly fresh: boolean }>;
  getSnapshot(id: string): StoreResult<SnapshotRow | null>;
  /** Bytes of its body, which is not read for it. */
  snapshotBytes(id: string): StoreResult<number | null>;
  /** Returns the snapshot in pieces, for readers of many snapshots that recognise shared texts by id. */
  getSnapshotPieces(id: string): StoreResult<SnapshotInPieces | null>;
  latestSnapshot(node: string): StoreResult<SnapshotRow | null>;

  getDecision(id: string): StoreResult<DecisionRow | null>;
  /** Finds decisions whose ids begin with these hexadecimal digits, at most 100, in the order of ids. */
  decisionsBeginning(digits: string): StoreResult<readonly { readonly id: string; readonly node: string }[]>;
  listDecisions(query: DecisionQuery): StoreResult<DecisionPage>;
  /**
   * Streams oldest first, in constant memory; with `after`, what follows that place. An unreadable row is a failure of
   * its own; any other failure ends the stream.
   */
  streamDecisions(filter: DecisionFilter, after?: Cursor): AsyncIterable<Result<StreamedDecision, StreamFailure>>;
  /** The decision that was made last, of a node or of all, including repetitions. Null: there is none. */
  newestDecision(node?: string): StoreResult<{ readonly id: string; readonly lastAtMs: number } | null>;
  findIdempotency(key: string, scope: string): StoreResult<IdempotencyRow | null>;

  /** `known`: the decision exists. A result whose id exists is not stored again and not counted in `added`. */
  addResults(
    decisionId: string,
    rows: readonly ResultRow[],
  ): StoreResult<{ readonly known: boolean; readonly added: number }>;
  listResults(decisionId: string): StoreResult<readonly ResultRow[]>;

  /**
   * Stores new outcomes and updates known ones, except when they were first recorded. Their nodes count as heard of
   * then.
   */
  putOutcomes(rows: readonly OutcomeRow[]): StoreResult<null>;
  listOutcomes(query: OutcomeQuery): StoreResult<OutcomePage>;
  /** Counts by kind and verdict, for each `bucketMs` of time by itself, oldest first. */
  tallyOutcomes(filter: OutcomeFilter, bucketMs: number): StoreResult<readonly OutcomeTally[]>;
  /** The node's newest snapshot that was observed at `atMs` or before, of those that were stored by `storedByMs`. */
  snapshotBefore(node: string, atMs: number, storedByMs: number): StoreResult<SnapshotRow | null>;

  listRemovals(query: RemovalQuery): StoreResult<RemovalPage>;
  /** Half-open: `sinceMs` <= atMs of the removal < `untilMs`. */
  summarizeRemovals(
    node: string,
    range: { readonly sinceMs?: number; readonly untilMs?: number },
  ): StoreResult<RemovalSummary>;

  /** Lists nodes by name; without a range all of them, which may be many. */
  listNodes(range?: NodeRange): StoreResult<readonly NodeRow[]>;
  getNode(name: string): StoreResult<NodeRow | null>;
  /** Records that its cluster deleted the node; its data stays. `known`: the node exists. */
  nodeDeleted(name: string, atMs: number): StoreResult<{ readonly known: boolean }>;
  /** Lists all nodes by name, or one, with their newest decisions, counted since the hour of `sinceMs`. */
  listFleet(sinceMs: number, node?: string): StoreResult<readonly FleetRow[]>;
  /** Oldest first; hours without decisions are left out. For one node, or for all together. */
  listHours(sinceMs: number, node?: string): StoreResult<readonly HourRow[]>;
  /** Counts the decisions about a node since the hour that `sinceMs` is in. */
  tallyOf(node: string, sinceMs: number): StoreResult<Tally>;

  /** Reads all facts, or those of these keys. */
  readFacts(node: string, keys?: readonly string[]): StoreResult<Readonly<Record<string, unknown>>>;
  /** Sets the given facts and leaves the others. `null` forgets a fact; a write older than the fact's last one is ignored. */
  writeFacts(node: string, facts: Readonly<Record<string, unknown>>, nowMs: number): StoreResult<null>;

  /** Removes rows that are too old or too many, in slices of a few milliseconds, one transaction each; earlier slices stay after a failure. */
  prune(retention: Retention): StoreResult<Pruned>;
  /**
   * Exports rows; with `after`, what follows that place. An unreadable row is a failure of its own (`isRow`); any
   * other failure ends it.
   */
  exportRows(filter: ExportFilter, after?: string): AsyncIterable<Result<ExportedRows, StoreFailure>>;
  /**
   * One atomic write of rows that another history exported, with their own ids and times. An existing row stays, except: a decision
   * gets the longer series and missing reports, a node newer values, an hour the larger count, an outcome its result.
   * `corrupt`: a text does not match its id, or a row needs a missing text; nothing was written.
   */
  importRows(rows: readonly ExportRow[], nowMs: number): StoreResult<ImportedRows>;
  /** Writes one row (at most once a second) and checks that the migrations of this version are applied. */
  ready(nowMs: number): StoreResult<{ readonly migration: string }>;
  /** Commits what waits, then closes. Later calls answer `unavailable`. */
  close(): Promise<void>;
}
