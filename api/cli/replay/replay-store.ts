import type { Store } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import { sha256 } from "../../server/digest.ts";
import { type ReplayQuestion, replayAnswer } from "../../service/replay/replay-answer.ts";
import { historyReplayer, LONG_RUN_LENGTH } from "../../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import { checkNode, storeFault } from "../inputs/open-history.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import type { ReplayPages } from "./replay-api.ts";

/** Replays a local history. Errors: no such node. */
export async function pagesOfStore(
  store: Store,
  { filter, change }: ReplayQuestion,
): Promise<Result<ReplayPages, Fault>> {
  const known = await checkNode(store, filter.node);
  if (!known.ok) return known;
  // one for all pages, so that its cache is reused
  const replay = historyReplayer(store, change, LONG_RUN_LENGTH);
  return ok(async (pageToken) => {
    const world = { store, replay, nowMs: Date.now(), sha256 };
    const request = { filter, change, limit: MAX_REPLAYED, ...(pageToken === undefined ? {} : { pageToken }) };
    const page = await replayAnswer(world, request);
    if (page.ok) return page;
    return page.error.code === "bad_page_token"
      ? fault(EXIT.badInput, `--page-token: ${page.error.message}`)
      : storeFault(page);
  });
}
