import type { DecisionFilter, Store } from "../../../db/store.ts";
import { nearNodes } from "../../http/nodes.ts";
import { ok, type Result } from "../../model/result.ts";
import { sha256 } from "../../server/digest.ts";
import type { Change } from "../../service/replay/parsed.ts";
import { type ReplayAnswer, replayAnswer } from "../../service/replay/replay-answer.ts";
import { historyReplayer, LONG_RUN_LENGTH } from "../../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import { posterOf, timeText } from "../history/history-api.ts";
import { storeFault } from "../history/open-history.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface Wanted {
  readonly filter: Pick<DecisionFilter, "node" | "kind" | "sinceMs" | "untilMs">;
  readonly change: Change;
}
/** A page of the replay; without a token the first. */
export type Pages = (pageToken: string | undefined) => Promise<Result<ReplayAnswer, Fault>>;

/** Replays a history that is here. Errors: there is no such node. */
export async function pagesOfStore(store: Store, { filter, change }: Wanted): Promise<Result<Pages, Fault>> {
  const known = await checkNode(store, filter.node);
  if (!known.ok) return known;
  // for all pages, so that what it read last is kept
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

async function checkNode(store: Store, node: string | undefined): Promise<Result<null, Fault>> {
  if (node === undefined) return ok(null);
  const found = await store.getNode(node);
  if (!found.ok) return storeFault(found);
  if (found.value !== null) return ok(null);
  const near = await nearNodes(store, node);
  const meant = near.length === 0 ? "" : `: did you mean ${near.join(" or ")}?`;
  return fault(EXIT.badInput, `--node ${node}: the history has no such node${meant}`);
}

/** Replays the history of a running API. Errors: what is no address of one. */
export function pagesOfApi(url: string, token: string | undefined, { filter, change }: Wanted): Result<Pages, Fault> {
  const api = posterOf(url, token);
  if (!api.ok) return api;
  const { sinceMs, untilMs, node, kind } = filter;
  const body = { since: timeText(sinceMs), until: timeText(untilMs), node, kind, ...change, limit: MAX_REPLAYED };
  return ok((pageToken) => api.value<ReplayAnswer>("v1/replay", { ...body, pageToken }));
}
