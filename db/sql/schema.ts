import { sql } from "drizzle-orm";
import { customType, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { GcOperation } from "../../api/model/container-gc.ts";
import type { Explain } from "../../api/model/decision.ts";
import type { RemovingKind } from "../../api/model/kinds.ts";
import { ENCODINGS } from "../body.ts";
import type { RemovalEnd, RemovalTarget } from "../rows.ts";

/**
 * JSON as text or as gzip, both of which SQLite stores in any column. D1 returns blobs as arrays of numbers, a Durable Object's
 * database as ArrayBuffers.
 */
const packable = (dataType: "blob" | "text") =>
  customType<{ data: string | Uint8Array; driverData: string | Uint8Array | ArrayBuffer | number[] }>({
    dataType: () => dataType,
    toDriver: (value) => value,
    fromDriver: (value) => (Array.isArray(value) || value instanceof ArrayBuffer ? new Uint8Array(value) : value),
  });
const body = packable("blob");
const longText = packable("text");

export const nodes = sqliteTable("nodes", {
  name: text("name").primaryKey(),
  firstSeenMs: integer("first_seen_ms").notNull(),
  lastSeenMs: integer("last_seen_ms").notNull(),
  bootId: text("boot_id"),
  lastSnapshotId: text("last_snapshot_id"),
  lastSequence: integer("last_sequence"),
  /** JSON, and the kubelet's version: both from the latest snapshot that has a node. */
  labels: text("labels"),
  kubeletVersion: text("kubelet_version"),
  /** JSON: the pressure conditions that are True in that snapshot. Null: none reported, or not recorded yet. */
  conditions: text("conditions"),
  /** When the node's cluster reported its deletion, until the node sends something again. Null: never. */
  deletedMs: integer("deleted_ms"),
});

/** Long texts that rows share, under the hash of their content. */
export const texts = sqliteTable(
  "texts",
  {
    id: text("id").primaryKey(),
    usedAtMs: integer("used_at_ms").notNull(),
    bytes: integer("bytes").notNull(),
    encoding: text("encoding", { enum: ENCODINGS }).notNull(),
    body: body("body").notNull(),
  },
  (t) => [index("texts_by_use").on(t.usedAtMs, t.id)],
);

export const snapshots = sqliteTable(
  "snapshots",
  {
    seq: integer("seq").primaryKey(),
    id: text("id").notNull(),
    node: text("node").notNull(),
    observedAtMs: integer("observed_at_ms"),
    sequence: integer("sequence"),
    bootId: text("boot_id"),
    storedAtMs: integer("stored_at_ms").notNull(),
    bytes: integer("bytes").notNull(),
    encoding: text("encoding", { enum: ENCODINGS }).notNull(),
    body: body("body").notNull(),
    /** JSON: which texts belong at which places of the body. Null: the body is complete. */
    parts: text("parts"),
  },
  (t) => [
    uniqueIndex("snapshots_id").on(t.id),
    index("snapshots_by_time").on(t.storedAtMs, t.seq, t.id),
    index("snapshots_by_node").on(t.node, t.observedAtMs, t.seq, t.id),
  ],
);

/** The verdicts of almost all decisions. */
const FREQUENT_VERDICTS: readonly string[] = ["decided", "calm", "keeps"];
const RARE = sql.raw(`verdict NOT IN (${FREQUENT_VERDICTS.map((verdict) => `'${verdict}'`).join(", ")})`);
/** The condition of the index of rare verdicts; null: the verdict is frequent, and its newest rows are found without the index. */
export const rareVerdictCondition = (verdict: string) => (FREQUENT_VERDICTS.includes(verdict) ? null : RARE);

export const decisions = sqliteTable(
  "decisions",
  {
    seq: integer("seq").primaryKey(),
    id: text("id").notNull(),
    kind: text("kind").notNull(),
    node: text("node").notNull(),
    snapshotId: text("snapshot_id"),
    policyVersion: text("policy_version").notNull(),
    verdict: text("verdict").notNull(),
    explain: text("explain").$type<Explain>().notNull(),
    decidedAtMs: integer("decided_at_ms").notNull(),
    podNamespace: text("pod_namespace"),
    podName: text("pod_name"),
    podUid: text("pod_uid"),
    bytes: integer("bytes").notNull(),
    encoding: text("encoding", { enum: ENCODINGS }).notNull(),
    ask: longText("ask"),
    body: body("body").notNull(),
    /** See snapshots. */
    parts: text("parts"),
    /** The kubelet's reason: see `KindSpec.reasonOf`. Null: none, or recorded before reasons were. */
    reason: text("reason"),
    /** `1.36` of `kubelet-1.36+7`, and of the older form `kubelet-1.36.3+6`. */
    kubelet: text("kubelet").generatedAlwaysAs(sql`substr(policy_version, 9, 4)`, { mode: "virtual" }),
  },
  (t) => [
    uniqueIndex("decisions_id").on(t.id),
    index("decisions_by_time").on(t.decidedAtMs, t.seq, t.kind, t.verdict),
    index("decisions_by_node").on(t.node, t.decidedAtMs, t.seq, t.kind, t.verdict),
    index("decisions_by_reason")
      .on(t.reason, t.decidedAtMs, t.seq, t.node, t.kind, t.verdict)
      .where(sql`reason IS NOT NULL`),
    index("decisions_by_verdict").on(t.verdict, t.decidedAtMs, t.seq, t.node, t.kind).where(RARE),
    index("decisions_by_kubelet").on(t.kubelet, t.decidedAtMs, t.seq),
    index("decisions_by_snapshot").on(t.snapshotId).where(sql`snapshot_id IS NOT NULL`),
    index("decisions_by_pod_uid").on(t.podUid).where(sql`pod_uid IS NOT NULL`),
    index("decisions_by_pod_name").on(t.podName, t.podNamespace).where(sql`pod_name IS NOT NULL`),
  ],
);

/**
 * Decisions that were repeated, with a count. Triggers keep the other counts in step. A table apart from `decisions`,
 * so that counting rewrites two indexes instead of all.
 */
export const series = sqliteTable(
  "series",
  {
    /** The decision's. */
    seq: integer("seq").primaryKey(),
    node: text("node").notNull(),
    /** How often the decision was made, including the first time. */
    times: integer("count").notNull(),
    lastAtMs: integer("last_at_ms").notNull(),
    lastSnapshotId: text("last_snapshot_id"),
    /** The id that the last repetition would have as its own row, so that a repeated request is not counted twice. */
    lastId: text("last_id"),
  },
  (t) => [
    index("series_by_time").on(t.lastAtMs),
    index("series_by_node").on(t.node),
    index("series_by_snapshot").on(t.lastSnapshotId).where(sql`last_snapshot_id IS NOT NULL`),
  ],
);

export const results = sqliteTable(
  "results",
  {
    id: text("id").primaryKey(),
    decisionId: text("decision_id")
      .notNull()
      .references(() => decisions.id, { onDelete: "cascade" }),
    node: text("node").notNull(),
    seq: integer("seq").notNull(),
    okCount: integer("ok_count").notNull(),
    failedCount: integer("failed_count").notNull(),
    atMs: integer("at_ms").notNull(),
    bytes: integer("bytes").notNull(),
    encoding: text("encoding", { enum: ENCODINGS }).notNull(),
    body: body("body").notNull(),
  },
  (t) => [index("results_by_decision").on(t.decisionId, t.seq, t.id)],
);

/** The removals by collections on a node. A removal is stored longer than its decision, so there is no reference to that. */
export const removals = sqliteTable(
  "removals",
  {
    seq: integer("seq").primaryKey(),
    node: text("node").notNull(),
    kind: text("kind").$type<RemovingKind>().notNull(),
    target: text("target").$type<RemovalTarget>().notNull(),
    objectId: text("object_id").notNull(),
    /** The runtime handler; empty: none, so that it can be part of the key. */
    runtimeHandler: text("runtime_handler").notNull(),
    /** JSON. */
    names: text("names").notNull(),
    sizeBytes: integer("size_bytes"),
    why: text("reason").notNull(),
    operation: text("operation").$type<GcOperation>().notNull(),
    end: text("result").$type<RemovalEnd>().notNull(),
    message: text("message"),
    atMs: integer("at_ms").notNull(),
    decisionId: text("decision_id").notNull(),
    /** When the image was seen again. Null: never, or no image. */
    againAtMs: integer("pulled_again_at_ms"),
    podNamespace: text("pod_namespace"),
    podName: text("pod_name"),
    podUid: text("pod_uid"),
    containerName: text("container_name"),
  },
  (t) => [
    uniqueIndex("removals_key").on(t.node, t.objectId, t.target, t.runtimeHandler, t.atMs),
    index("removals_by_node").on(t.node, t.atMs, t.seq, t.kind, t.target, t.end),
    index("removals_by_time").on(t.atMs, t.seq),
  ],
);

/** Actions of kubelets, each compared with a decision. An outcome keeps its snapshot from being removed. */
export const outcomes = sqliteTable(
  "outcomes",
  {
    seq: integer("seq").primaryKey(),
    id: text("id").notNull(),
    node: text("node").notNull(),
    kind: text("kind").notNull(),
    verdict: text("verdict").notNull(),
    atMs: integer("at_ms").notNull(),
    recordedAtMs: integer("recorded_at_ms").notNull(),
    snapshotId: text("snapshot_id"),
    podNamespace: text("pod_namespace"),
    podName: text("pod_name"),
    podUid: text("pod_uid"),
    bytes: integer("bytes").notNull(),
    encoding: text("encoding", { enum: ENCODINGS }).notNull(),
    body: body("body").notNull(),
    /** The kubelet's reason: see `reasonOfOutcome`. Null: none, or recorded before reasons were. */
    reason: text("reason"),
  },
  (t) => [
    uniqueIndex("outcomes_id").on(t.id),
    index("outcomes_by_time").on(t.atMs, t.seq, t.kind, t.verdict),
    index("outcomes_by_node").on(t.node, t.atMs, t.seq, t.kind, t.verdict),
    index("outcomes_by_reason").on(t.reason, t.atMs, t.seq, t.node, t.kind, t.verdict).where(sql`reason IS NOT NULL`),
    index("outcomes_by_namespace")
      .on(t.podNamespace, t.atMs, t.seq, t.kind, t.verdict)
      .where(sql`pod_namespace IS NOT NULL`),
    index("outcomes_by_pod_uid").on(t.podUid).where(sql`pod_uid IS NOT NULL`),
    index("outcomes_by_pod_name").on(t.podName, t.podNamespace).where(sql`pod_name IS NOT NULL`),
    index("outcomes_by_snapshot").on(t.snapshotId).where(sql`snapshot_id IS NOT NULL`),
  ],
);

/** The newest decision of each node and kind, maintained by a trigger on `decisions`; the decision itself may be pruned meanwhile. */
export const latest = sqliteTable(
  "latest",
  {
    node: text("node").notNull(),
    kind: text("kind").notNull(),
    decisionId: text("decision_id").notNull(),
    verdict: text("verdict").notNull(),
    decidedAtMs: integer("decided_at_ms").notNull(),
    policyVersion: text("policy_version").notNull().default(""),
    reason: text("reason"),
    /** JSON: see `KindSpec.summaryOf`. Null: the kind has none. */
    summary: text("summary"),
  },
  (t) => [primaryKey({ columns: [t.node, t.kind] })],
);

/**
 * The number of decisions by result and hour, maintained by the same trigger. The hour comes first, since the fleet is
 * read more often than one node.
 */
export const hours = sqliteTable(
  "hours",
  {
    hourMs: integer("hour_ms").notNull(),
    node: text("node").notNull(),
    decisions: integer("decisions").notNull(),
    refused: integer("refused").notNull(),
    /** Eviction passes that found a condition, and among them those that chose a pod. */
    pressured: integer("pressured").notNull(),
    evicted: integer("evicted").notNull(),
    /** Passes of a garbage collection that had something to remove. */
    removed: integer("removed").notNull(),
  },
  (t) => [primaryKey({ columns: [t.hourMs, t.node] })],
);

/** The refusals of each hour by their reason, or by the verdict if there is none. Maintained by the same trigger. */
export const refusals = sqliteTable(
  "refusals",
  {
    hourMs: integer("hour_ms").notNull(),
    node: text("node").notNull(),
    reason: text("reason").notNull(),
    count: integer("count").notNull(),
  },
  (t) => [primaryKey({ columns: [t.hourMs, t.node, t.reason] })],
);

/** The outcomes of each hour that have a reason, including refusals and evictions by kubelets. Maintained by triggers on `outcomes`. */
export const outcomeHours = sqliteTable(
  "outcome_hours",
  {
    hourMs: integer("hour_ms").notNull(),
    node: text("node").notNull(),
    kind: text("kind").notNull(),
    reason: text("reason").notNull(),
    count: integer("count").notNull(),
  },
  (t) => [primaryKey({ columns: [t.hourMs, t.node, t.kind, t.reason] })],
);

export const facts = sqliteTable(
  "facts",
  {
    node: text("node").notNull(),
    key: text("key").notNull(),
    /** JSON; `null`: the fact was forgotten, and the row stays so that an older write cannot restore it. */
    value: text("value").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
  },
  (t) => [primaryKey({ columns: [t.node, t.key] })],
);

/** The parts of a fact's value that do not fit into its own row. */
export const factParts = sqliteTable(
  "fact_parts",
  {
    node: text("node").notNull(),
    key: text("key").notNull(),
    /** The number of the part, from 1; the fact's own row has the first part of the text. */
    part: integer("part").notNull(),
    value: text("value").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
  },
  (t) => [primaryKey({ columns: [t.node, t.key, t.part] })],
);

/** The number of rows of each node in `decisions`, `outcomes` and removals by kind, maintained by triggers. */
export const rowCounts = sqliteTable(
  "row_counts",
  {
    /** What is counted. */
    kind: text("kind").$type<"decisions" | "outcomes" | RemovingKind>().notNull(),
    node: text("node").notNull(),
    rows: integer("rows").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.node] }),
    index("row_counts_none").on(t.node).where(sql`kind = 'decisions' AND rows = 0`),
  ],
);

/** Snapshots that may be useless: new ones, and those that a decision or a node no longer refers to. Triggers add to it. */
export const uncheckedSnapshots = sqliteTable("unchecked_snapshots", { seq: integer("seq").primaryKey() });

/** One row: when history was last removed by age, or the reference time if a clock was too far ahead before that. */
export const sweeps = sqliteTable("sweeps", {
  id: integer("id").primaryKey(),
  atMs: integer("at_ms").notNull(),
});

export const tokens = sqliteTable(
  "tokens",
  {
    id: text("id").primaryKey(),
    name: text("name").notNull(),
    hash: text("hash").notNull(),
    scopes: text("scopes", { mode: "json" }).$type<readonly string[]>().notNull(),
    node: text("node"),
    createdAtMs: integer("created_at_ms").notNull(),
    revokedAtMs: integer("revoked_at_ms"),
  },
  (t) => [uniqueIndex("tokens_hash").on(t.hash)],
);

export const idempotency = sqliteTable(
  "idempotency",
  {
    key: text("key").notNull(),
    scope: text("scope").notNull(),
    requestHash: text("request_hash").notNull(),
    decisionId: text("decision_id")
      .notNull()
      .references(() => decisions.id, { onDelete: "cascade" }),
    atMs: integer("at_ms").notNull(),
  },
  (t) => [primaryKey({ columns: [t.key, t.scope] }), index("idempotency_by_decision").on(t.decisionId)],
);

/** One row, once a decision log was configured: up to where decisions are delivered, and by which process. */
export const decisionLog = sqliteTable("decision_log", {
  id: integer("id").primaryKey(),
  /** All decisions up to this number are delivered. */
  deliveredSeq: integer("delivered_seq").notNull(),
  /** Decisions that were removed undelivered and are not reported yet. Triggers add to it. */
  lost: integer("lost").notNull(),
  /** The delivering process, until then by the database's clock. Null: none, or its position is no longer valid. */
  holder: text("holder"),
  heldUntilMs: integer("held_until_ms").notNull(),
});

/** One row, rewritten by `ready` to prove that the database accepts writes. */
export const health = sqliteTable("health", {
  id: integer("id").primaryKey(),
  checkedAtMs: integer("checked_at_ms").notNull(),
  /** A filler as large as the last failed write. */
  filler: body("filler"),
});
