import { getReservesAdvice } from "./advice.ts";
import { getAgreement, postOutcomes } from "./agreement.ts";
import { postBatch } from "./batch.ts";
import { listDecisions, listDecisionsOfNode } from "./decision-list.ts";
import { getDecision, postDecision } from "./decisions.ts";
import { getHistory, postHistory } from "./export-import.ts";
import { getNode, listNodes } from "./fleet.ts";
import { getHealth, getReady, METRICS_ROUTES } from "./health.ts";
import { postLint } from "./lint.ts";
import { getSnapshot, postDeletion, putSnapshot } from "./nodes.ts";
import { openApi } from "./openapi/contract.ts";
import { getRemovalSummary, listRemovals } from "./removals.ts";
import { postReplay, postReplayHistory } from "./replay.ts";
import { postResults } from "./results.ts";
import { jsonText, type Route } from "./route.ts";
import { postTurn } from "./turns.ts";
import { postUpgrade } from "./upgrade.ts";
import { getWhy, postWhy } from "./why.ts";

/** Every route of the contract; pages are beside it (ui/index.ts). /openapi.json describes the same list, which a test holds it to. */
export const ROUTES: readonly Route[] = [
  { method: "POST", path: "/v1/decisions/:decision", scope: "decide", handle: postDecision },
  { method: "GET", path: "/v1/decisions", scope: "read", offThread: true, handle: listDecisions },
  { method: "GET", path: "/v1/decisions/:decision", scope: "read", offThread: true, handle: getDecision },
  { method: "POST", path: "/v1/decisions/:decision/replay", scope: "read", offThread: true, handle: postReplay },
  { method: "POST", path: "/v1/replay", scope: "read", offThread: true, handle: postReplayHistory },
  { method: "POST", path: "/v1/lint", scope: "read", offThread: true, handle: postLint },
  { method: "POST", path: "/v1/upgrade", scope: "read", offThread: true, handle: postUpgrade },
  { method: "POST", path: "/v1/why", scope: "read", offThread: true, handle: postWhy },
  { method: "POST", path: "/v1/batch", scope: "decide", handle: postBatch },
  { method: "POST", path: "/v1/results", scope: "decide", handle: postResults },
  { method: "GET", path: "/v1/nodes", scope: "read", offThread: true, handle: listNodes },
  { method: "GET", path: "/v1/nodes/:node", scope: "read", offThread: true, handle: getNode },
  { method: "GET", path: "/v1/nodes/:node/decisions", scope: "read", offThread: true, handle: listDecisionsOfNode },
  { method: "GET", path: "/v1/nodes/:node/removals", scope: "read", offThread: true, handle: listRemovals },
  {
    method: "GET",
    path: "/v1/nodes/:node/removals/summary",
    scope: "read",
    offThread: true,
    handle: getRemovalSummary,
  },
  { method: "POST", path: "/v1/nodes/:node/outcomes", scope: "decide", handle: postOutcomes },
  { method: "GET", path: "/v1/agreement", scope: "read", offThread: true, handle: getAgreement },
  { method: "GET", path: "/v1/nodes/:node/pods/:namespace/:name/why", scope: "read", offThread: true, handle: getWhy },
  { method: "GET", path: "/v1/nodes/:node/advice/reserves", scope: "read", offThread: true, handle: getReservesAdvice },
  { method: "POST", path: "/v1/nodes/:node/turns", scope: "decide", handle: postTurn },
  { method: "PUT", path: "/v1/nodes/:node/snapshot", scope: "decide", handle: putSnapshot },
  { method: "POST", path: "/v1/nodes/:node/deletion", scope: "decide", handle: postDeletion },
  { method: "GET", path: "/v1/history", scope: "admin", offThread: true, handle: getHistory },
  { method: "POST", path: "/v1/history", scope: "admin", handle: postHistory },
  { method: "GET", path: "/v1/snapshots/:id", scope: "read", offThread: true, handle: getSnapshot },
  { method: "GET", path: "/healthz", scope: null, handle: getHealth },
  { method: "GET", path: "/readyz", scope: null, handle: getReady },
  ...METRICS_ROUTES,
  { method: "GET", path: "/openapi.json", scope: null, handle: async () => jsonText((await openApi(ROUTES)).text) },
];
