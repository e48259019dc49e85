import type { StoreFailure } from "../../../db/failure.ts";
import { ok, type Result } from "../../model/result.ts";
import type { ReplayAnswer } from "../../replay/replay-answer.ts";
import { type Counted, countedWith } from "./counted.ts";

/** So long is worth waiting for where nothing on the page moves meanwhile. */
export const LONG_SECONDS = 10;

export interface Pages {
  /** What the pages before counted. */
  readonly counted: Counted;
  /** Where the first begins; empty: at the beginning. */
  readonly pageToken: string;
  /** No page more is begun after so many milliseconds; 0: one page is all. */
  readonly budgetMs: number;
  /** Of whoever waits for them. */
  readonly signal: AbortSignal;
}
export interface ReplayedPages {
  readonly counted: Counted;
  readonly last: ReplayAnswer;
}

/** One page of a replay after the other, added up, until the history ends, the time is up or nobody waits any more. Errors: those of `ask`. */
export async function replayedPages(
  ask: (pageToken: string) => Promise<Result<ReplayAnswer, StoreFailure>>,
  { counted: before, pageToken, budgetMs, signal }: Pages,
): Promise<Result<ReplayedPages, StoreFailure>> {
  const endMs = performance.now() + budgetMs;
  let counted = before;
  let token = pageToken;
  for (;;) {
    const answer = await ask(token);
    if (!answer.ok) return answer;
    const last = answer.value;
    counted = countedWith(counted, last);
    if (last.nextPageToken === null || performance.now() >= endMs || signal.aborted) return ok({ counted, last });
    token = last.nextPageToken;
  }
}
