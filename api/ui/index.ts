import { ROUTES } from "../http/index.ts";
import { getLive } from "../http/live.ts";
import { openApi } from "../http/openapi/contract.ts";
import type { Route } from "../http/route.ts";
import { getAgreementPage } from "./agreement-page.ts";
import { getAsset } from "./assets.ts";
import { getDecisionPage } from "./decision/decision.ts";
import { getDecisionsPage } from "./decision/decisions-page.ts";
import { getDocs } from "./docs.ts";
import { getCompare } from "./fleet/compare-page.ts";
import { getFleet } from "./fleet/fleet.ts";
import { getLintPage, postLintPage } from "./lint-page.ts";
import { getNodePage } from "./node/node-page.ts";
import { getReplayPage, postReplayPage } from "./replay/replay-page.ts";
import { getSignIn, postSignIn, postSignOut } from "./sign-in.ts";
import { getUpgradePage, postUpgradePage } from "./upgrade-page.ts";
import { getWhatIf, postWhatIf } from "./what-if/what-if.ts";
import { getWhyPage } from "./why-page.ts";

/** The pages, and the files that they load. */
export const PAGES: readonly Route[] = [
  { method: "GET", path: "/", scope: "read", page: true, offThread: true, handle: getFleet },
  { method: "GET", path: "/compare", scope: "read", page: true, offThread: true, handle: getCompare },
  { method: "GET", path: "/decisions", scope: "read", page: true, offThread: true, handle: getDecisionsPage },
  { method: "GET", path: "/decisions/:decision", scope: "read", page: true, offThread: true, handle: getDecisionPage },
  { method: "GET", path: "/nodes/:node", scope: "read", page: true, offThread: true, handle: getNodePage },
  {
    method: "GET",
    path: "/nodes/:node/decisions",
    scope: "read",
    page: true,
    offThread: true,
    handle: getDecisionsPage,
  },
  {
    method: "GET",
    path: "/nodes/:node/pods/:namespace/:name",
    scope: "read",
    page: true,
    offThread: true,
    handle: getWhyPage,
  },
  { method: "GET", path: "/what-if", scope: "read", page: true, offThread: true, handle: getWhatIf },
  { method: "POST", path: "/what-if", scope: "read", page: true, offThread: true, handle: postWhatIf },
  { method: "GET", path: "/replay", scope: "read", page: true, offThread: true, handle: getReplayPage },
  { method: "POST", path: "/replay", scope: "read", page: true, offThread: true, handle: postReplayPage },
  { method: "GET", path: "/lint", scope: "read", page: true, offThread: true, handle: getLintPage },
  { method: "POST", path: "/lint", scope: "read", page: true, offThread: true, handle: postLintPage },
  { method: "GET", path: "/upgrade", scope: "read", page: true, offThread: true, handle: getUpgradePage },
  { method: "POST", path: "/upgrade", scope: "read", page: true, offThread: true, handle: postUpgradePage },
  { method: "GET", path: "/agreement", scope: "read", page: true, offThread: true, handle: getAgreementPage },
  { method: "GET", path: "/sign-in", scope: null, page: true, handle: getSignIn },
  { method: "POST", path: "/sign-in", scope: null, page: true, handle: postSignIn },
  { method: "POST", path: "/sign-out", scope: null, page: true, handle: postSignOut },
  { method: "GET", path: "/docs", scope: null, page: true, handle: () => getDocs(openApi(ROUTES)) },
  { method: "GET", path: "/live", scope: "read", page: true, handle: getLive },
  { method: "GET", path: "/assets/:name", scope: null, handle: getAsset },
];
