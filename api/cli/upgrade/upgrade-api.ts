import { ok, type Result } from "../../base/result.ts";
import type { UpgradeAnswer } from "../../http/upgrade.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import type { UpgradePage } from "../../service/upgrade/upgrade-page.ts";
import { apiOf, posterOf, timeText } from "../inputs/history-api.ts";
import { firstOf } from "../inputs/history-source.ts";
import { flagsAndDropInsBody } from "../lint/lint-input.ts";
import type { Fault } from "../terminal.ts";
import { isOfConfiguration, MAX_NODES, type UpgradeRequest, type UpgradeSource } from "./upgrade-source.ts";

/** Reads reports from a running API. Errors: an invalid address. */
export function sourceOfApi(
  url: string,
  token: string | undefined,
  { to, from, filter }: UpgradeRequest,
): Result<UpgradeSource, Fault> {
  const post = posterOf(url, token);
  if (!post.ok) return post;
  const get = apiOf(url, token);
  if (!get.ok) return get;
  const versions = { to: to.asked, from: from?.asked };
  const ask = (body: object) => post.value<UpgradeAnswer>("v1/upgrade", { ...versions, ...body });
  return ok({
    nodes: async () => {
      const all = await firstOf(MAX_NODES, async ({ limit, pageToken }) => {
        const query = { limit: String(limit), pageToken };
        const page = await get.value<NodePage>("v1/nodes", query);
        return page.ok ? ok({ items: page.value.nodes, nextPageToken: page.value.nextPageToken }) : page;
      });
      return all.ok ? ok(all.value.map(({ name }) => name)) : all;
    },
    reportOf: async (node, kubeletConfiguration, beside) => {
      const answer = await ask({ node, kubeletConfiguration, ...flagsAndDropInsBody(beside) });
      if (answer.ok) return ok(answer.value.report ?? "no snapshot of it is stored");
      const { problem } = answer.error;
      if (problem?.code === "needs_input") return ok(problem.detail.replace("from:", "--from"));
      if (problem?.code === "invalid_input" && isOfConfiguration(problem.detail)) return ok(problem.detail);
      return answer;
    },
    page: async (node, pageToken) => {
      const { sinceMs, untilMs, kind } = filter;
      // an answer without a time has no history
      const since = timeText(sinceMs ?? 0);
      const body = { node, kind, since, until: timeText(untilMs), pageToken, limit: MAX_REPLAYED };
      const answer = await ask(body);
      return answer.ok ? ok(answer.value.history as UpgradePage) : answer;
    },
  });
}
interface NodePage {
  readonly nodes: readonly { readonly name: string }[];
  readonly nextPageToken: string | null;
}
