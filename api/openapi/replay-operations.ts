import { KINDS } from "../model/decision.ts";
import { MAX_REPLAYED } from "../replay/replay-page.ts";
import { DEFAULT_REPLAYED } from "../routes/replay-history.ts";
import { REPLAY_HISTORY } from "./examples.ts";
import type { JsonSchema } from "./input-schemas.ts";
import { BODY, json, type Operation, REPLAY_REQUEST, time } from "./operation.ts";

const { kubeletConfiguration, kubeletConfigurationPatch } = REPLAY_REQUEST["properties"] as Record<string, JsonSchema>;

const REQUEST: JsonSchema = {
  ...REPLAY_REQUEST,
  properties: {
    since: { ...time, description: "decided then or later" },
    until: { ...time, description: "decided earlier; absent: until now" },
    node: { type: "string", description: "of this node; absent: of all that the token may see" },
    kind: { type: "string", enum: KINDS, description: "of this kind" },
    kubeletConfiguration,
    kubeletConfigurationPatch,
    limit: {
      type: "integer",
      minimum: 1,
      maximum: MAX_REPLAYED,
      default: DEFAULT_REPLAYED,
      description: "decisions of one page; a page that takes long ends earlier",
    },
    pageToken: {
      type: "string",
      description:
        "the nextPageToken of the page before, with the same node, kind and configuration; the times are those of the first page",
    },
  },
};

export const REPLAY_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/replay": {
    tag: "history",
    summary:
      "Decide the history again, with another configuration if one is given, and count what would have been others",
    description:
      "Oldest first, a page at a time: go on with `nextPageToken` until it is null, and add the counts up. Decisions that remember are asked with what they were told then. What cannot be decided again, since its snapshot is gone or a record is damaged, is counted apart and passed. Nothing is recorded.",
    body: json(REQUEST, REPLAY_HISTORY),
    answers: { 200: "HistoryReplay" },
    problems: [...BODY, "unknown_node"],
  },
};
