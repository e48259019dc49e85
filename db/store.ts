import type { Explain, Kind } from "../api/model/decision.ts";
import type { Result } from "../api/model/result.ts";
import type { StoreFailure } from "./failure.ts";
import type { FleetRow, HourRow, Tally } from "./fleet-row.ts";
import type { Place } from "./page-token.ts";
import type { SnapshotInPieces } from "./parts.ts";
import type { RemovalPage, RemovalQuery, RemovalSummary, Removals } from "./removal.ts";
import type { StreamedDecision, StreamFailure } from "./streamed.ts";

/** Parts of a text, from and to (exclusive) in UTF-16 units, in order and apart. */
export type Ranges = readonly (readonly [from: number, to: number])[];

/** A node's state as posted. Times are milliseconds since the epoch; `body` is JSON text, which the store never parses. */
export interface SnapshotRow {
  /** The hash of the canonical form: the same snapshot twice is one row. */
  readonly id: string;
  readonly node: string;
  readonly observedAtMs: number | null;
  readonly sequence: number | null;
  readonly bootId: string | null;
  readonly storedAtMs: number;
  readonly body: string;
  /** For writing alone: ranges of the body that the node's next rows will repeat, each stored once. Whole members of it, with the comma before them. */
  readonly repeats?: Ranges;
}

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What a list shows of a decision. */
export interface DecisionHead {
  readonly id: string;
  /** A `Kind`, unless another version wrote it: who decides by it or draws it looks first (`isKind`). */
  readonly kind: string;
  readonly node: string;
  readonly snapshotId: string | null;
  readonly policyVersion: string;
  readonly verdict: string;
  readonly explain: Explain;
  readonly decidedAtMs: number;
  /** The pod that the ask spoke of, or that the decision chose. */
  readonly pod: PodRef | null;
}

/** `ask` and `body` (decision, reasons, needs, next) are JSON text. */
export interface DecisionRow extends DecisionHead {
  readonly ask: string | null;
  readonly body: string;
  /** Likewise, of whatever. */
  readonly repeats?: Ranges;
}

/** What the node really did with a decision; `body` is JSON text. The node is the decision's own. */
export interface ResultRow {
  readonly id: string;
  /** The actuator's counter: results of one decision are listed in its order. */
  readonly seq: number;
  readonly okCount: number;
  readonly failedCount: number;
  readonly atMs: number;
  readonly body: string;
}

export interface NodeRow {
  readonly name: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** The three of the node's latest snapshot. */
  readonly bootId: string | null;
  readonly lastSnapshotId: string | null;
  readonly lastSequence: number | null;
}

export interface TokenRow {
  readonly id: string;
  readonly name: string;
  /** sha256 of the secret, in hex. The secret itself is never stored. */
  readonly hash: string;
  readonly scopes: readonly string[];
  /** The only node that the token may speak for; null: any. */
  readonly node: string | null;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
}

/** `scope` is the token's id, or `anonymous`: two callers never share a key. */
export interface IdempotencyKey {
  readonly key: string;
  readonly scope: string;
  readonly requestHash: string;
}
export interface IdempotencyRow extends IdempotencyKey {
  readonly decisionId: string;
}

export interface Recording {
  readonly decision: DecisionRow;
  readonly snapshot?: SnapshotRow;
  /** Facts of the decision's node: see `writeFacts`. A repeated decision does not write them again. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** What the decision tells of removals. A repeated decision does not tell it again. */
  readonly removals?: Removals;
  readonly idempotency?: IdempotencyKey;
}

/**
 * `fresh`: the row was not there before. `decisionId`: the decision that answers the request, which is an earlier one when the
 * idempotency key was used before. `conflict`: that key belongs to a request with another hash, and the decision was not stored.
 */
export interface Recorded {
  readonly fresh: boolean;
  readonly decisionId: string;
  readonly conflict: boolean;
}

/** Half-open: `sinceMs` <= decidedAtMs < `untilMs`. */
export interface DecisionFilter {
  readonly node?: string;
  readonly kind?: Kind;
  readonly verdict?: string;
  /** A uid, a `namespace/name`, or a name. */
  readonly pod?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
}
export interface DecisionQuery extends DecisionFilter {
  /** 1 to `MAX_PAGE`; values outside are brought inside. */
  readonly limit: number;
  readonly pageToken?: string;
}
export const MAX_PAGE = 500;

export interface DecisionPage {
  /** Newest first. */
  readonly items: readonly DecisionHead[];
  readonly nextPageToken: string | null;
}

export interface Retention {
  readonly nowMs: number;
  /** Decisions older than this go. */
  readonly maxAgeMs?: number;
  /** Of each node's decisions, only this many of the newest stay. */
  readonly maxRowsPerNode?: number;
  /** Removals go by the same age; of each node's, only this many of the newest of each kind stay. */
  readonly maxRemovalsPerNode?: number;
}
export interface Pruned {
  readonly decisions: number;
  readonly removals: number;
  readonly snapshots: number;
}

type Answer<T> = Promise<Result<T, StoreFailure>>;

/** The history. Every method answers a value, also when the disk is full, the file locked or broken, or the network gone. */
export interface Store {
  /** One atomic write. When it answers, the rows survive a crash. */
  record(recording: Recording): Answer<Recorded>;
  putSnapshot(snapshot: SnapshotRow): Answer<{ readonly fresh: boolean }>;
  getSnapshot(id: string): Answer<SnapshotRow | null>;
  /** For who reads many of them, and knows what other rows share by its id. */
  getSnapshotPieces(id: string): Answer<SnapshotInPieces | null>;
  latestSnapshot(node: string): Answer<SnapshotRow | null>;

  getDecision(id: string): Answer<DecisionRow | null>;
  listDecisions(query: DecisionQuery): Answer<DecisionPage>;
  /** Oldest first, in constant memory; with `after`, what follows that place. A row that cannot be read is a failure of its own; any other ends it. */
  streamDecisions(filter: DecisionFilter, after?: Place): AsyncIterable<Result<StreamedDecision, StreamFailure>>;
  findIdempotency(key: string, scope: string): Answer<IdempotencyRow | null>;

  /** `known`: the decision exists. A result whose id is already there is not stored again and not counted in `added`. */
  addResults(
    decisionId: string,
    rows: readonly ResultRow[],
  ): Answer<{ readonly known: boolean; readonly added: number }>;
  listResults(decisionId: string): Answer<readonly ResultRow[]>;

  listRemovals(query: RemovalQuery): Answer<RemovalPage>;
  /** Half-open: `sinceMs` <= atMs of the removal < `untilMs`. */
  summarizeRemovals(
    node: string,
    range: { readonly sinceMs?: number; readonly untilMs?: number },
  ): Answer<RemovalSummary>;

  listNodes(): Answer<readonly NodeRow[]>;
  getNode(name: string): Answer<NodeRow | null>;
  /** All nodes by name, or one, with their newest decisions, counted since the hour that `sinceMs` is in. */
  listFleet(sinceMs: number, node?: string): Answer<readonly FleetRow[]>;
  /** Oldest first; hours in which nothing was decided are left out. Of one node, or of all together. */
  listHours(sinceMs: number, node?: string): Answer<readonly HourRow[]>;
  /** What was decided about a node since the hour that `sinceMs` is in. */
  tallyOf(node: string, sinceMs: number): Answer<Tally>;

  /** All, or those of these keys. */
  readFacts(node: string, keys?: readonly string[]): Answer<Readonly<Record<string, unknown>>>;
  /** Sets the facts given and leaves the others. `null` forgets a fact; a write older than the fact's last one is ignored. */
  writeFacts(node: string, facts: Readonly<Record<string, unknown>>, nowMs: number): Answer<null>;

  /** `fresh` is false when the id or the hash is already taken. */
  createToken(token: TokenRow): Answer<{ readonly fresh: boolean }>;
  listTokens(): Answer<readonly TokenRow[]>;
  /** `revoked` is false when there is no such active token. */
  revokeToken(id: string, nowMs: number): Answer<{ readonly revoked: boolean }>;
  /** Active tokens only. */
  findTokenByHash(hash: string): Answer<TokenRow | null>;
  countActiveTokens(): Answer<number>;

  /** Works in small batches, each its own transaction. A failure leaves what was already removed removed. */
  prune(retention: Retention): Answer<Pruned>;
  /** Writes one row (at most once a second) and checks that the migrations of this version are applied. */
  ready(nowMs: number): Answer<{ readonly migration: string }>;
  /** Commits what waits, then closes. Later calls answer `unavailable`. */
  close(): Promise<void>;
}
