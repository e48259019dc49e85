import { REMOVAL_KINDS, REMOVAL_TARGETS } from "../../db/removal.ts";
import { MAX_PAGE } from "../../db/store.ts";
import { REMOVAL_ENDS } from "../model/garbage-collection.ts";
import { LIMITS } from "../model/limits.ts";
import { node, type Operation, query, time } from "./operation.ts";

const since = query("since", "Removed then or later", time);
const until = query("until", "Removed earlier", time);

export const REMOVAL_OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /v1/nodes/:node/removals": {
    tag: "history",
    summary: "What was removed of a node, when and why, newest first",
    description:
      "Known from answers to an ask with `done`: what only was planned is not here. Kept as long as decisions are by age, also where their number takes those away sooner.",
    parameters: [
      node,
      query("kind", "Only by this kind of decision", { type: "string", enum: REMOVAL_KINDS }),
      query("target", "Only of this sort", { type: "string", enum: REMOVAL_TARGETS }),
      query("end", "Only with this end", { type: "string", enum: REMOVAL_ENDS }),
      since,
      until,
      query("q", "Only with this in an id, in an image's name, in NAMESPACE/POD or in a container's name", {
        type: "string",
        minLength: 1,
        maxLength: LIMITS.textLength,
      }),
      query("limit", "At most so many", { type: "integer", minimum: 1, maximum: MAX_PAGE, default: 50 }),
      query("pageToken", "The nextPageToken of the page before"),
    ],
    answers: { 200: "RemovalList" },
    problems: ["unknown_node", "invalid_query"],
  },
  "GET /v1/nodes/:node/removals/summary": {
    tag: "history",
    summary: "What removing images brought, and how often they were pulled again",
    parameters: [node, since, until],
    answers: { 200: "RemovalSummary" },
    problems: ["unknown_node", "invalid_query"],
  },
};
