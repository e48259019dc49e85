import type { Store } from "../../../db/store.ts";
import { Lru } from "../../model/cache.ts";
import type { MovedHeader, MovedRow } from "../../model/moved-row.ts";
import { ok, type Result } from "../../model/result.ts";
import { type ExportPage, type ExportPart, exportHeader, exportProgress, partOf } from "../../service/export-page.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import type { Fault } from "../terminal.ts";
import { apiOf, timeText } from "./history-api.ts";
import { storeFault } from "./open-history.ts";

/** The next rows of an export. */
type ExportStep = Pick<ExportPage, "rows" | "leftOut" | "reachedAt" | "progress"> & {
  /** An export goes on behind them with this; null: nothing follows. */
  readonly place: string | null;
};

/** Where an export reads: a store, or a running API. */
export interface ExportSource {
  /** Tells it apart from others. */
  readonly label: string;
  /** The first line. Errors: there is no such history, or it is not this caller's. */
  begin(part: ExportPart): Promise<Result<MovedHeader, Fault>>;
  /** The rows behind a place; empty: all that follow the first line. */
  steps(header: MovedHeader, place: string): AsyncGenerator<Result<ExportStep, Fault>>;
}

export const storeSource = (store: Store, label: string, hasTokens: boolean): ExportSource => ({
  label,
  begin: async (part) => ok(await exportHeader(store, part, Date.now())),
  async *steps(header, after) {
    const part = partOf(header);
    const shareAt = await exportProgress(store, header, part);
    let place = after;
    const filter = hasTokens ? { ...part, tokens: true as const } : part;
    for await (const step of store.exportRows(filter, place === "" ? undefined : place)) {
      if (!step.ok && step.error.isRow !== true) return yield storeFault(step);
      const { rows, atMs } = step.ok ? step.value : { rows: [], atMs: null };
      if (step.ok) place = step.value.place;
      const reachedAt = atMs === null ? null : rfc3339(atMs);
      yield ok({ rows, place, reachedAt, progress: shareAt(atMs), leftOut: step.ok ? [] : [step.error.message] });
    }
  },
});

/** Texts and snapshots that are known to be in the export already, which pages of an API may hold again. */
const SENT = 128 * 1024;

/** Errors: the address is none. */
export function apiSource(url: string, token: string | undefined): Result<ExportSource, Fault> {
  const api = apiOf(url, token);
  if (!api.ok) return api;
  const page = ({ node, sinceMs, untilMs }: ExportPart, more: { limit?: string; pageToken?: string }) =>
    api.value<ExportPage>("v1/history", { node, since: timeText(sinceMs), until: timeText(untilMs), ...more });
  return ok({
    label: url,
    begin: async (part) => {
      const first = await page(part, { limit: "1" });
      return first.ok ? ok(first.value.header) : first;
    },
    async *steps(header, after) {
      const sent = new Lru<string, true>(SENT);
      const isNew = (row: MovedRow): boolean => {
        if (row.type !== "text" && row.type !== "snapshot") return true;
        const key = `${row.type}/${row.id}`;
        const isSent = sent.get(key) === true;
        sent.set(key, true);
        return !isSent;
      };
      for (let place: string | null = after; place !== null; ) {
        const next: Result<ExportPage, Fault> = await page(partOf(header), place === "" ? {} : { pageToken: place });
        if (!next.ok) return yield next;
        const { rows, nextPageToken, leftOut, reachedAt, progress } = next.value;
        place = nextPageToken;
        yield ok({ rows: rows.filter(isNew), place, leftOut, reachedAt, progress });
      }
    },
  });
}
