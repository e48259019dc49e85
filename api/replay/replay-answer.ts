import type { StoreFailure } from "../../db/failure.ts";
import { failure } from "../../db/failure.ts";
import type { DecisionFilter, Store } from "../../db/store.ts";
import { ok, type Result } from "../model/result.ts";
import { timeText } from "../routes/route.ts";
import type { Change } from "./change.ts";
import type { ChangedDecision, UnreadableDecision } from "./changed-decision.ts";
import type { Compared, Replayer } from "./replay-one.ts";
import { replayPage } from "./replay-page.ts";
import { decodeResume, encodeResume, printOf, type Resume } from "./resume-token.ts";
import type { Tally } from "./tally.ts";

export interface HistoryRequest {
  /** Without an end: until now. With a page token its times do not count, but those of the first page. */
  readonly filter: Pick<DecisionFilter, "node" | "kind" | "sinceMs" | "untilMs">;
  readonly change: Change;
  /** 1 to `MAX_REPLAYED`. */
  readonly limit: number;
  readonly pageToken?: string;
}

/** What POST /v1/replay answers. */
export interface ReplayAnswer extends Tally {
  /** Of this page, all of them. */
  readonly changed: readonly ChangedDecision[];
  /** Likewise: what was passed because it cannot be read. */
  readonly unreadable: readonly UnreadableDecision[];
  /** Times in RFC 3339; the end is the same for all pages. */
  readonly until: string;
  /** When the last decision that was looked at was decided; null: there was none. */
  readonly reachedAt: string | null;
  /** 0 to 1, by the time between the oldest decision and the newest. */
  readonly progress: number;
  readonly nextPageToken: string | null;
}

interface World {
  readonly store: Pick<Store, "streamDecisions" | "listDecisions">;
  readonly replay: Replayer<Compared>;
  readonly nowMs: number;
  readonly sha256: (text: string) => string | Promise<string>;
}

/** A page of a replay, and the token with which it goes on. Errors: those of the history, and a token of another replay. */
export async function replayAnswer(
  { store, replay, nowMs, sha256 }: World,
  { filter, change, limit, pageToken }: HistoryRequest,
): Promise<Result<ReplayAnswer, StoreFailure>> {
  const print = await printOf(filter, change, sha256);
  const resumed = pageToken === undefined ? ok(null) : resumeOf(pageToken, print);
  if (!resumed.ok) return resumed;
  const after = resumed.value;
  // what was decided in this very millisecond is history too
  const untilMs = after?.untilMs ?? filter.untilMs ?? nowMs + 1;
  const found = await replayPage(store, replay, {
    filter: { ...filter, untilMs },
    limit,
    ...(after === null ? {} : { after }),
  });
  if (!found.ok) return found;
  const { next, reachedMs, ...page } = found.value;
  return ok({
    ...page,
    until: timeText(untilMs),
    reachedAt: reachedMs === null ? null : timeText(reachedMs),
    nextPageToken: next === null ? null : encodeResume({ ...next, untilMs, print }),
  });
}

function resumeOf(token: string, print: string): Result<Resume, StoreFailure> {
  const resume = decodeResume(token);
  if (resume === null) {
    return failure("bad_page_token", "the page token is not one that a replay gave out; start again without it");
  }
  if (resume.print !== print) {
    const advice = "ask for the same node, kind and configuration, or start again without it";
    return failure("bad_page_token", `the page token belongs to another replay; ${advice}`);
  }
  return ok(resume);
}
