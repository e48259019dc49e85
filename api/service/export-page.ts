import * as z from "zod";
import { failure, type StoreFailure } from "../../db/failure.ts";
import type { ExportedRows, ExportFilter, Store } from "../../db/store.ts";
import packageJson from "../../package.json" with { type: "json" };
import { decodeToken, encodeToken } from "../base/page-token.ts";
import { ok, type Result } from "../base/result.ts";
import { EXPORT_FORMAT, type ExportHeader, type ExportRow, exportHeaderForm } from "../model/export-row.ts";
import { isTimestamp } from "../model/fields.ts";
import { yieldToEventLoop } from "./task-queue.ts";
import { rfc3339 } from "./timestamp.ts";

/** The default number of rows on a page, each with the rows it needs: on Workers an invocation may run a thousand statements. */
export const DEFAULT_EXPORTED = 200;
/** The limits in UTF-16 units of the rows and in milliseconds after which a page ends. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
const BUDGET_MS = 1000;
/** Reading blocks the thread, so it pauses this often, ms. */
const TIME_SLICE_MS = 5;

/** The part of a history that is exported: a node, a start and an end in epoch ms; absent for no limit. */
export type ExportPart = Omit<ExportFilter, "tokens">;
type ExportStore = Pick<Store, "exportRows" | "streamDecisions" | "newestDecision">;

/** The first line of an export that starts now. */
export async function exportHeader(store: ExportStore, part: ExportPart, nowMs: number): Promise<ExportHeader> {
  const { node, sinceMs, untilMs } = part;
  let oldestAt: string | null = null;
  for await (const first of store.streamDecisions(part)) {
    const head = first.ok ? first.value : first.error.row;
    if (head !== undefined) oldestAt = rfc3339(head.decidedAtMs);
    break;
  }
  return {
    type: "nodewise-history",
    formatVersion: EXPORT_FORMAT,
    version: packageJson.version,
    exportedAt: rfc3339(nowMs),
    ...(node === undefined ? {} : { node }),
    ...(sinceMs === undefined ? {} : { since: rfc3339(sinceMs) }),
    ...(untilMs === undefined ? {} : { until: rfc3339(untilMs) }),
    oldestAt,
  };
}

/** The progress of an export, 0 to 1, by the time of its last decision (null if past the last one). */
export async function exportProgress(
  store: ExportStore,
  { oldestAt, exportedAt }: ExportHeader,
  { node, untilMs = Number.POSITIVE_INFINITY }: ExportPart,
): Promise<(atMs: number | null) => number> {
  const newest = await store.newestDecision(node);
  const fromMs = Date.parse(oldestAt ?? exportedAt);
  const endMs = Math.min(untilMs, (newest.ok ? newest.value?.lastAtMs : undefined) ?? Date.parse(exportedAt));
  return (atMs) => (atMs === null ? 1 : Math.min(1, Math.max(0, (atMs - fromMs) / Math.max(1, endMs - fromMs))));
}

/** The response of GET /v1/history. */
export interface ExportPage {
  /** The export's first line, the same on each page. */
  readonly header: ExportHeader;
  readonly rows: readonly ExportRow[];
  /** Entries of this page that cannot be read, one line each. */
  readonly leftOut: readonly string[];
  /** When the last decision of the page was made, RFC 3339; null if the page ends with another row. */
  readonly reachedAt: string | null;
  /** 0 to 1. */
  readonly progress: number;
  readonly nextPageToken: string | null;
}

/** An export under way: its first line, and the position after which it continues. */
const resume = z.tuple([exportHeaderForm, z.string()]);
type Resume = z.output<typeof resume>;

export const encodeResume = (...begun: Resume): string => encodeToken(JSON.stringify(begun));

/** The position in a page token; null if the token is not from an export. */
function decodeResume(token: string): Resume | null {
  try {
    const begun = resume.parse(JSON.parse(decodeToken(token) ?? "null"));
    const { exportedAt, oldestAt, since, until } = begun[0];
    return [exportedAt, oldestAt, since, until].every((time) => time == null || isTimestamp(time)) ? begun : null;
  } catch {
    return null;
  }
}

/** The part of the history that an export with this first line has. */
export const partOf = ({ node, since, until }: ExportHeader): ExportPart => ({
  ...(node === undefined ? {} : { node }),
  ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
  ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
});

function resumed(token: string, node: string | undefined): Result<Resume, StoreFailure> {
  const found = decodeResume(token);
  if (found === null)
    return failure("bad_page_token", "the page token is not one that an export gave out; start again without it");
  if (found[0].node === node) return ok(found);
  const whose = found[0].node === undefined ? "all nodes" : `the node \`${found[0].node}\``;
  return failure(
    "bad_page_token",
    `the page token belongs to an export of ${whose}: ask for that, or start without it`,
  );
}

interface ExportRequest {
  /** The part to export; with a page token, the times of the first page apply. */
  readonly part: ExportPart;
  /** At least 1. */
  readonly limit: number;
  readonly pageToken?: string;
  readonly nowMs: number;
  /** If aborted, the page ends with what it has. */
  readonly signal?: AbortSignal;
}

/** A page of an export, limited in entries, characters and time. */
export async function exportPage(
  store: ExportStore,
  { part, limit, pageToken, nowMs, signal }: ExportRequest,
): Promise<Result<ExportPage, StoreFailure>> {
  const begun = pageToken === undefined ? ok(null) : resumed(pageToken, part.node);
  if (!begun.ok) return begun;
  const [header, after] = begun.value ?? [await exportHeader(store, part, nowMs), undefined];
  const asked = partOf(header);
  const shareAt = await exportProgress(store, header, asked);
  const rows: ExportRow[] = [];
  const leftOut: string[] = [];
  const started = performance.now();
  let slice = started;
  let characters = 0;
  let entries = 0;
  let last: ExportedRows | null = null;
  let isWhole = true;
  for await (const step of store.exportRows(asked, after)) {
    if (!step.ok && step.error.isRow !== true) return step;
    const isFull = entries >= limit || characters > MAX_CHARACTERS || performance.now() - started > BUDGET_MS;
    isWhole = last === null || !(isFull || signal?.aborted === true);
    if (!isWhole) break;
    entries += 1;
    if (!step.ok) leftOut.push(step.error.message);
    else {
      last = step.value;
      rows.push(...last.rows);
      characters += charactersOf(last.rows);
    }
    if (performance.now() - slice < TIME_SLICE_MS) continue;
    await yieldToEventLoop();
    slice = performance.now();
  }
  const atMs = last?.atMs ?? null;
  return ok({
    header,
    rows,
    leftOut,
    reachedAt: atMs === null ? null : rfc3339(atMs),
    progress: isWhole ? 1 : (last?.progress ?? shareAt(atMs)),
    nextPageToken: isWhole || last === null ? null : encodeResume(header, last.place),
  });
}

/** The length of the long members, which make up most of a row. */
const charactersOf = (rows: readonly ExportRow[]): number =>
  rows.reduce(
    (sum, row) => sum + 200 + ("body" in row ? row.body.length : 0) + ("text" in row ? row.text.length : 0),
    0,
  );
