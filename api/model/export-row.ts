import * as z from "zod";
import { GC_OPERATIONS, REMOVAL_ENDS } from "./container-gc.ts";
import { EXPLAIN, KINDS } from "./decision.ts";
import { isRemoving } from "./kinds.ts";

/**
 * The version of the form below. A form with another meaning, or with new rows that must not be skipped, gets the next
 * number.
 */
export const EXPORT_FORMAT = 1;
/** Bytes of a line at most. What a row can hold is less. */
export const MAX_EXPORT_LINE = 128 * 1024 * 1024;

const ms = z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER);
const count = ms.min(0);
const id = z.string().min(1).max(253);
const name = z.string().max(253);
/** A text of any length, since it was checked when it was recorded. */
const long = z.string();
const pod = z.strictObject({ namespace: z.string(), name: z.string(), uid: z.string() }).nullable();
const textId = z.string().regex(/^[0-9a-f]{32}$/, "must be 32 hexadecimal digits");
/** `[place in the body, id of a text]`, with the range of the text where it is a part of one (UTF-16 units). */
const parts = z.array(z.union([z.tuple([count, textId]), z.tuple([count, textId, count, count])])).nullable();

/** A text that rows share. INVARIANT: `id` is the beginning of the sha256 of it. */
const text = z.strictObject({ type: z.literal("text"), id: textId, text: long });

const snapshot = z.strictObject({
  type: z.literal("snapshot"),
  id,
  node: name,
  observedAtMs: ms.nullable(),
  sequence: ms.nullable(),
  bootId: z.string().nullable(),
  storedAtMs: ms,
  /** Length of the whole body, in UTF-8. */
  bytes: count,
  body: long,
  parts,
});

const result = z.strictObject({ id, seq: count, okCount: count, failedCount: count, atMs: ms, body: long });

const decision = z.strictObject({
  type: z.literal("decision"),
  id,
  kind: name,
  node: name,
  snapshotId: id.nullable(),
  policyVersion: name,
  verdict: name,
  reason: z.string().nullable(),
  explain: z.enum(EXPLAIN),
  decidedAtMs: ms,
  pod,
  bytes: count,
  ask: long.nullable(),
  body: long,
  parts,
  /** How often it was made; absent: once. */
  series: z
    .strictObject({ times: count.min(2), lastAtMs: ms, lastSnapshotId: id.nullable(), lastId: id.nullable() })
    .optional(),
  results: z.array(result),
});

const outcome = z.strictObject({
  type: z.literal("outcome"),
  id,
  node: name,
  kind: name,
  verdict: name,
  atMs: ms,
  recordedAtMs: ms,
  snapshotId: id.nullable(),
  pod,
  reason: z.string().nullable(),
  body: long,
});

const removal = z.strictObject({
  type: z.literal("removal"),
  node: name,
  kind: z.enum(KINDS.filter(isRemoving)),
  target: z.enum(["image", "container", "sandbox", "pod-logs", "log-link"]),
  id: z.string(),
  runtimeHandler: z.string(),
  names: z.array(z.string()),
  sizeBytes: count.nullable(),
  why: z.string(),
  operation: z.enum(GC_OPERATIONS),
  end: z.enum(REMOVAL_ENDS),
  message: z.string().nullable(),
  atMs: ms,
  decisionId: id,
  againAtMs: ms.nullable(),
  pod,
  container: z.string().nullable(),
});

const latest = z.strictObject({
  kind: name,
  decisionId: id,
  verdict: name,
  decidedAtMs: ms,
  policyVersion: z.string(),
  reason: z.string().nullable(),
  summary: long.nullable(),
});
/** `value` is JSON. */
const fact = z.strictObject({ key: z.string(), value: long, updatedAtMs: ms });

const node = z.strictObject({
  type: z.literal("node"),
  name,
  firstSeenMs: ms,
  lastSeenMs: ms,
  bootId: z.string().nullable(),
  lastSnapshotId: id.nullable(),
  lastSequence: ms.nullable(),
  labels: long.nullable(),
  kubeletVersion: z.string().nullable(),
  conditions: long.nullable(),
  deletedMs: ms.nullable(),
  latest: z.array(latest),
  facts: z.array(fact),
});

/** A node's counts in an hour: they outlive the decisions, and show when a repeated decision was made. */
const hour = z.strictObject({
  type: z.literal("hour"),
  hourMs: ms,
  node: name,
  decisions: count,
  refused: count,
  pressured: count,
  evicted: count,
  removed: count,
  refusals: z.array(z.strictObject({ reason: z.string(), count })),
  outcomes: z.array(z.strictObject({ kind: name, reason: z.string(), count })),
});

const token = z.strictObject({
  type: z.literal("token"),
  id,
  name: z.string(),
  /** sha256 of the secret. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  scopes: z.array(z.string()),
  node: name.nullable(),
  createdAtMs: ms,
  revokedAtMs: ms.nullable(),
});

/**
 * One row of a history in transit to another one, with everything that belongs to it alone. Texts and snapshots come
 * before rows that need them.
 */
export const exportRowForm = z.discriminatedUnion("type", [
  text,
  snapshot,
  decision,
  outcome,
  removal,
  node,
  hour,
  token,
]);
export const EXPORT_ROW_TYPES = exportRowForm.options.map((option) => option.shape.type.value);
export type ExportRow = z.output<typeof exportRowForm>;
export type ExportRowOf<Type extends ExportRow["type"]> = Extract<ExportRow, { readonly type: Type }>;

/** The first line. */
export const exportHeaderForm = z.object({
  type: z.literal("nodewise-history"),
  formatVersion: z.number().int().min(1),
  /** The version of the program that wrote it. */
  version: z.string(),
  exportedAt: z.string(),
  /** The filter of the export; absent: everything. */
  node: z.string().optional(),
  since: z.string().optional(),
  until: z.string().optional(),
  /** The first decision's time; null: there is none. */
  oldestAt: z.string().nullable(),
});
export type ExportHeader = z.output<typeof exportHeaderForm>;

/** The last line, without which the file is incomplete. `rows`: the number of lines between the first and this one. */
export const exportEndForm = z.object({ type: z.literal("end"), rows: count });

export type ExportEnd = z.output<typeof exportEndForm>;
