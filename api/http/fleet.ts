import { MAX_PAGE } from "../../db/store.ts";
import { HOUR_MS } from "../base/duration.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { notAmongIssue } from "../base/near-name.ts";
import { decodeToken, encodeToken } from "../base/page-token.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { KINDS, VERDICTS } from "../model/decision.ts";
import { EVICTION_SIGNALS, PRESSURE_CONDITIONS } from "../model/eviction.ts";
import { verdictLabel } from "../model/kinds.ts";
import { headOf } from "../service/decision-head.ts";
import {
  ASKED_VERSION,
  comparePlaces,
  FLEET_SORTS,
  FLEET_VIEWS,
  type FleetCursor,
  type FleetFilter,
  type FleetNode,
  type FleetOrder,
  filtered,
  fleetOf,
  type Headroom,
  isCursor,
  NO_ASKED_VERSION,
  ordered,
  placeOf,
  usualOrder,
} from "../service/fleet.ts";
import { parseLabelSelector } from "../service/label-selector.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { type CsvCell, csvText } from "../text/csv.ts";
import { rangeIn, reasonIssues } from "./decision-list.ts";
import { findNode, unknownNode } from "./nodes.ts";
import { csv, type Exchange, json, MAX_CSV_ROWS, queryOf, queryProblem, wantsCsv } from "./route.ts";

const FILTERS = [
  "name",
  "namePrefix",
  "labelSelector",
  "zone",
  "kubelet",
  "kind",
  "verdict",
  "pressure",
  "reason",
  "show",
] as const;
const PARAMETERS = [...FILTERS, "sort", "order", "hours", "limit", "pageToken", "format"] as const;
type FleetParameters = Readonly<Partial<Record<(typeof PARAMETERS)[number], string>>>;

export const PRESSURES = ["any", "none", "not-known", ...PRESSURE_CONDITIONS] as const;
export const ORDERS = ["asc", "desc"] as const;
/** How far back refusals and evictions are counted: as long as history usually is kept. */
export const MAX_HOURS = 720;
const DEFAULT_HOURS = 24;

/** GET /v1/nodes: the fleet; a node's token sees its own. */
export async function listNodes(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, PARAMETERS);
  if (!given.ok) return given;
  const isCsv = wantsCsv(exchange, given.value.format);
  if (!isCsv.ok) return isCsv;
  const query = fleetQuery(given.value, isCsv.value ? MAX_CSV_ROWS : MAX_PAGE);
  if (!query.ok) return query;
  const { filter, by, hours, limit, after } = query.value;
  const { deps, caller } = exchange;
  const now = deps.now();
  const sinceMs = Math.floor(now / HOUR_MS - hours) * HOUR_MS;
  const nodes = await fleetOf(deps.store, now, sinceMs, caller.node ?? undefined);
  if (!nodes.ok) return historyProblem(nodes.error);
  const all = ordered(filtered(nodes.value, filter), by);
  const rest = after === null ? all : all.filter((node) => comparePlaces(placeOf(node, by), after, by) > 0);
  const shown = rest.slice(0, limit);
  const last = rest.length > limit ? shown.at(-1) : undefined;
  const nextPageToken = last === undefined ? null : tokenOf(by, placeOf(last, by));
  if (isCsv.value) return csv(exchange, nodesCsv(shown), "nodes", nextPageToken);
  return json({ nodes: shown.map(listedNode), countedSince: rfc3339(sinceMs), nextPageToken });
}

/** GET /v1/nodes/{node}: with its newest decision of each kind. */
export async function getNode(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const found = await findNode(exchange);
  if (!found.ok) return found;
  const { store, now } = exchange.deps;
  const sinceMs = Math.floor(now() / HOUR_MS - DEFAULT_HOURS) * HOUR_MS;
  const [nodes, ...pages] = await Promise.all([
    fleetOf(store, now(), sinceMs, found.value.name),
    ...KINDS.map((kind) => store.listDecisions({ node: found.value.name, kind, limit: 1 })),
  ]);
  if (!nodes.ok) return historyProblem(nodes.error);
  const latest: Record<string, unknown> = {};
  for (const [i, page] of pages.entries()) {
    if (!page.ok) return historyProblem(page.error);
    const [head] = page.value.items;
    latest[KINDS[i] as string] = head === undefined ? null : headOf(head);
  }
  const [node] = nodes.value;
  if (node === undefined) return unknownNode(exchange, found.value.name);
  const thresholds = node.headroom.map(headroomOf);
  return json({ ...listedNode(node), labels: node.labels, thresholds, countedSince: rfc3339(sinceMs), latest });
}

const headroomOf = ({ observedAtMs, metAtMs, soonMs: _, ...rest }: Headroom) => ({
  ...rest,
  observedAt: rfc3339(observedAtMs),
  metAt: metAtMs === null ? null : rfc3339(metAtMs),
});

/** A node as lists show it. */
const listedNode = (node: FleetNode) => ({
  name: node.name,
  firstSeenAt: rfc3339(node.firstSeenMs),
  lastSeenAt: rfc3339(node.lastSeenMs),
  deletedAt: node.deletedMs === null ? null : rfc3339(node.deletedMs),
  bootId: node.bootId,
  lastSnapshotId: node.lastSnapshotId,
  lastSequence: node.lastSequence,
  zone: node.zone,
  kubeletVersion: node.kubeletVersion,
  decidedAs: node.kubelet === "" ? null : node.kubelet,
  severity: node.severity,
  silent: node.silent,
  pressureFrom: node.pressureFrom,
  conditions: node.conditions,
  headroom: node.headroom[0] === undefined ? null : headroomOf(node.headroom[0]),
  decisions: node.decisions,
  refused: node.refused,
  refusals: node.refusals,
  evicted: node.evicted,
  kubeletRefused: node.kubeletReported ? node.kubeletRefused : null,
  kubeletRefusals: node.kubeletRefusals,
  kubeletEvicted: node.kubeletReported ? node.kubeletEvicted : null,
  drift: node.drift,
  lastDecisionAt: node.lastDecisionMs === null ? null : rfc3339(node.lastDecisionMs),
  latest: Object.fromEntries(
    Object.entries(node.latest).map(([kind, { decisionId, verdict, reason, decidedAtMs }]) => [
      kind,
      { id: decisionId, verdict, reason, decidedAt: rfc3339(decidedAtMs) },
    ]),
  ),
});

const reasonsText = (refusals: FleetNode["refusals"]): string =>
  refusals.map(({ reason, count }) => `${reason}=${count}`).join(" ");

const HEADROOM_COLUMNS = ["threshold", "type", "distance", "ratio", "metAt"] as const;
/** The cells of a signal's hard or soft threshold, whichever is met first, as on the page. */
const headroomCells = ({ headroom }: FleetNode): readonly CsvCell[] =>
  EVICTION_SIGNALS.flatMap((signal) => {
    const first = headroom.find((one) => one.signal === signal);
    const fields = first === undefined ? null : headroomOf(first);
    return HEADROOM_COLUMNS.map((column) => fields?.[column] ?? null);
  });

const nodesCsv = (nodes: readonly FleetNode[]): string =>
  csvText(
    [
      ...["name", "zone", "kubeletVersion", "decidedAs", "severity", "silent", "pressureFrom", "conditions"],
      ...["headroomSignal", "headroomThreshold", "headroomType", "headroomDistance", "headroomRatio", "headroomMetAt"],
      ...["decisions", "refused", "refusals", "evicted", "kubeletRefused", "kubeletRefusals", "kubeletEvicted"],
      ...["drift", "verdicts", "lastDecisionAt", "lastSeenAt", "deletedAt"],
      ...EVICTION_SIGNALS.flatMap((signal) => HEADROOM_COLUMNS.map((column) => `${signal}.${column}`)),
    ],
    nodes.map(listedNode).map((node, i) => [
      ...[node.name, node.zone, node.kubeletVersion, node.decidedAs, node.severity, String(node.silent)],
      ...[node.pressureFrom, node.conditions.join(" ")],
      ...[node.headroom?.signal ?? null, node.headroom?.threshold ?? null, node.headroom?.type ?? null],
      ...[node.headroom?.distance ?? null, node.headroom?.ratio ?? null, node.headroom?.metAt ?? null],
      ...[node.decisions, node.refused, reasonsText(node.refusals), node.evicted],
      ...[node.kubeletRefused, reasonsText(node.kubeletRefusals), node.kubeletEvicted, node.drift],
      Object.entries(node.latest)
        .map(
          ([kind, { verdict, reason }]) =>
            `${kind}=${verdictLabel({ kind, verdict })}${reason === null ? "" : `:${reason}`}`,
        )
        .join(" "),
      ...[node.lastDecisionAt, node.lastSeenAt, node.deletedAt],
      ...headroomCells(nodes[i] as FleetNode),
    ]),
  );

interface FleetQuery {
  readonly filter: FleetFilter;
  readonly by: FleetOrder;
  readonly hours: number;
  readonly limit: number;
  /** Where the page begins; null: at the beginning. */
  readonly after: FleetCursor | null;
}

/** Parses the query. `rows`: the default page size. */
function fleetQuery(given: FleetParameters, rows: number): Result<FleetQuery, Problem> {
  const { issues: rangeIssues } = rangeIn(given, null);
  const issues = [...rangeIssues];
  const filter = filterIn(given, issues);
  const sort = among(issues, "sort", given.sort, FLEET_SORTS) ?? "name";
  const by = { sort, order: among(issues, "order", given.order, ORDERS) ?? usualOrder(sort) };
  const hours = given.hours === undefined ? DEFAULT_HOURS : /^\d{1,3}$/.test(given.hours) ? Number(given.hours) : 0;
  if (hours < 1 || hours > MAX_HOURS)
    issues.push({ path: "hours", message: `must be a number from 1 to ${MAX_HOURS}` });
  const after = given.pageToken === undefined ? null : placeIn(given.pageToken, by);
  if (after === undefined) {
    const message = "is not one that this list gave out in this order; start again without it";
    issues.push({ path: "pageToken", message });
  }
  if (issues.length > 0) return queryProblem(issues);
  const limit = given.limit === undefined ? rows : Number(given.limit);
  return ok({ filter, by, hours, limit, after: after ?? null });
}

function among<T extends string>(
  issues: InputIssue[],
  path: string,
  given: string | undefined,
  words: readonly T[],
): T | undefined {
  const found = words.find((word) => word === given);
  if (given !== undefined && found === undefined) issues.push(notAmongIssue(path, given, words));
  return found;
}

/** Adds to `issues` what is wrong. */
function filterIn(given: FleetParameters, issues: InputIssue[]): FleetFilter {
  const selector = parseLabelSelector(given.labelSelector ?? "");
  if (!selector.ok) issues.push({ path: "labelSelector", message: selector.error });
  if (given.kubelet !== undefined && !ASKED_VERSION.test(given.kubelet))
    issues.push({ path: "kubelet", message: NO_ASKED_VERSION });
  const { name, namePrefix, zone, kubelet, reason } = given;
  issues.push(...reasonIssues(reason, true));
  const words = {
    kind: among(issues, "kind", given.kind, KINDS),
    verdict: among(issues, "verdict", given.verdict, VERDICTS),
    condition: among(issues, "pressure", given.pressure, PRESSURES),
    show: among(issues, "show", given.show, FLEET_VIEWS),
  };
  const texts = { name, namePrefix, zone, kubelet, reason, ...words };
  const known = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined));
  return { ...known, selector: selector.ok ? selector.value : [] };
}

/** A place with its order, in the letters of a query. */
const tokenOf = ({ sort, order }: FleetOrder, place: FleetCursor): string =>
  encodeToken(JSON.stringify([sort, order, ...place]));
const LONGEST_TOKEN = 5700;
/** The place in a page token; undefined: it is no token, or one of another order. */
function placeIn(token: string, by: FleetOrder): FleetCursor | undefined {
  if (token.length > LONGEST_TOKEN) return undefined;
  try {
    const parts: unknown = JSON.parse(decodeToken(token) ?? "null");
    if (!Array.isArray(parts)) return undefined;
    const [sort, order, ...place] = parts as readonly unknown[];
    return sort === by.sort && order === by.order && isCursor(place, by) ? place : undefined;
  } catch {
    return undefined;
  }
}
