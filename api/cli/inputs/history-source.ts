import { readFile } from "node:fs/promises";
import type { RemovalFilter } from "../../../db/rows.ts";
import { MAX_PAGE } from "../../../db/store.ts";
import { durationBefore } from "../../base/duration.ts";
import { ok, type Result } from "../../base/result.ts";
import type { removalOf, summaryOf } from "../../http/removals.ts";
import type { headOf } from "../../service/decision-head.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

/** A decision, a removal and a summary of removals, as the API returns them. */
export type Listed = ReturnType<typeof headOf>;
export type ListedRemoval = ReturnType<typeof removalOf>;
export type Summary = ReturnType<typeof summaryOf>;

/** Where removals are read: a data directory or a running API. */
export interface RemovalSource {
  /** The newest removals, at most `limit`. */
  list(filter: RemovalFilter, limit: number): Promise<Result<readonly ListedRemoval[], Fault>>;
  summarize(node: string, times: Times): Promise<Result<Summary, Fault>>;
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string | null;
}
/** The first `limit` items of a list that is read page by page. */
export async function firstOf<Item>(
  limit: number,
  readPage: (query: { readonly limit: number; readonly pageToken?: string }) => Promise<Result<Page<Item>, Fault>>,
): Promise<Result<readonly Item[], Fault>> {
  const items: Item[] = [];
  let pageToken: string | null | undefined;
  while (items.length < limit && pageToken !== null) {
    const query = { limit: Math.min(MAX_PAGE, limit - items.length) };
    const page = await readPage(pageToken === undefined ? query : { ...query, pageToken });
    if (!page.ok) return page;
    items.push(...page.value.items);
    pageToken = page.value.nextPageToken;
  }
  return ok(items);
}

/** The token for a running API. It is never an argument, which every user of the machine could see. */
export async function tokenOf(
  { tokenFile }: { readonly tokenFile?: string },
  { env }: Cli,
): Promise<Result<string | undefined, Fault>> {
  if (tokenFile === undefined) return ok(env["NODEWISE_TOKEN"] || undefined);
  try {
    return ok((await readFile(tokenFile, "utf8")).trim());
  } catch (error) {
    return fault(EXIT.badInput, `--token-file ${tokenFile}: cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

export interface Times {
  readonly sinceMs?: number;
  readonly untilMs?: number;
}
/** `--since` and `--until`. Errors: neither a time nor a duration. */
export function timesOf(
  given: { readonly since?: string; readonly until?: string },
  nowMs: number,
): Result<Times, Fault> {
  const times: { sinceMs?: number; untilMs?: number } = {};
  for (const [option, field] of [
    ["since", "sinceMs"],
    ["until", "untilMs"],
  ] as const) {
    const text = given[option];
    if (text === undefined) continue;
    const at = timeOf(text, nowMs);
    if (at === undefined)
      return fault(
        EXIT.badInput,
        `--${option}: \`${text}\` is neither a time (2026-01-31T12:00:00Z) nor a duration (90m, 7d)`,
      );
    times[field] = at;
  }
  return ok(times);
}

/** Milliseconds since the epoch. A duration is a Go duration, and may start with days. */
function timeOf(text: string, nowMs: number): number | undefined {
  const before = durationBefore(text, nowMs);
  if (before !== null) return before;
  const time = TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))?$/i;
