import { ok, type Result } from "../../base/result.ts";
import type { ReplayAnswer, ReplayQuestion } from "../../service/replay/replay-answer.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import { posterOf, timeText } from "../inputs/history-api.ts";
import type { Fault } from "../terminal.ts";

/** A page of the replay; the first without a token. */
export type ReplayPages = (pageToken: string | undefined) => Promise<Result<ReplayAnswer, Fault>>;

/** Replays the history of a running API. Errors: an invalid address. */
export function pagesOfApi(
  url: string,
  token: string | undefined,
  { filter, change }: ReplayQuestion,
): Result<ReplayPages, Fault> {
  const api = posterOf(url, token);
  if (!api.ok) return api;
  const { sinceMs, untilMs, node, kind } = filter;
  const body = { since: timeText(sinceMs), until: timeText(untilMs), node, kind, ...change, limit: MAX_REPLAYED };
  return ok((pageToken) => api.value<ReplayAnswer>("v1/replay", { ...body, pageToken }));
}
