import type { InputIssue } from "../../base/input-issue.ts";
import { notAmongIssue } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { reasonIssues } from "../../http/decision-list.ts";
import { type Exchange, queryOf, queryProblem } from "../../http/route.ts";
import {
  ASKED_VERSION,
  FLEET_SORTS,
  FLEET_VIEWS,
  type FleetSort,
  type FleetView,
  NO_ASKED_VERSION,
  usualOrder,
} from "../../service/fleet.ts";
import { parseLabelSelector, type Requirement } from "../../service/label-selector.ts";
import type { Problem } from "../../service/problem.ts";

export const HOURS = [1, 6, 24, 168] as const;
const PARAMETERS = ["q", "labels", "zone", "show", "kubelet", "reason", "sort", "order", "hours", "page"] as const;

const WORST_FIRST: FleetSort = "severity";

/** The shown part of the fleet; the link contains all of it. */
export interface FleetQuestion {
  /** Part of the node's name. */
  readonly q: string;
  /** A label selector; empty: any. */
  readonly labels: string;
  /** The zone; empty: any. */
  readonly zone: string;
  readonly show: FleetView;
  /** Version of the kubelet; empty: any. */
  readonly kubelet: string;
  /** The kubelet's reason why a pod was refused; empty: any. */
  readonly reason: string;
  readonly sort: FleetSort;
  readonly order: "asc" | "desc";
  /** How many hours the counts go back. */
  readonly hours: number;
  /** The page number, from 1. */
  readonly page: number;
}

const MAX_PAGES = 9_999;

type ParsedFleetQuestion = FleetQuestion & { readonly selector: readonly Requirement[] };

export function fleetQuestion(exchange: Exchange): Result<ParsedFleetQuestion, Problem> {
  const given = queryOf(exchange, PARAMETERS);
  if (!given.ok) return given;
  const { q = "", labels = "", zone = "", reason = "", show = "all" } = given.value;
  const kubelet = (given.value.kubelet ?? "").trim();
  const { sort = WORST_FIRST, order, hours = "24", page = "1" } = given.value;
  const issues: InputIssue[] = [];
  const among = <T extends string>(path: string, value: string, words: readonly T[]): T => {
    const found = words.find((word) => word === value);
    if (found === undefined) issues.push(notAmongIssue(path, value, words));
    return found ?? (words[0] as T);
  };
  const hour = among("hours", hours, HOURS.map(String));
  const place = /^\d{1,4}$/.test(page) ? Number(page) : 0;
  if (place < 1) issues.push({ path: "page", message: `must be a number from 1 to ${MAX_PAGES}` });
  if (kubelet !== "" && !ASKED_VERSION.test(kubelet)) issues.push({ path: "kubelet", message: NO_ASKED_VERSION });
  if (reason !== "") issues.push(...reasonIssues(reason, true));
  const by = among("sort", sort, FLEET_SORTS);
  const selector = parseLabelSelector(labels);
  if (!selector.ok) issues.push({ path: "labels", message: selector.error });
  const question: ParsedFleetQuestion = {
    q: q.trim().slice(0, 253),
    labels: labels.trim(),
    selector: selector.ok ? selector.value : [],
    zone,
    show: among("show", show, FLEET_VIEWS),
    kubelet,
    reason,
    sort: by,
    order: among("order", order ?? usualOrder(by), ["asc", "desc"]),
    hours: Number(hour),
    page: place,
  };
  return issues.length === 0 ? ok(question) : queryProblem(issues);
}

/** The link to the same page with some values changed; values equal to the defaults are left out. */
export function fleetLink(question: FleetQuestion, change: Partial<FleetQuestion>): string {
  const { q, labels, zone, show, kubelet, reason, sort, order, hours, page } = { ...question, page: 1, ...change };
  const query = new URLSearchParams();
  if (q !== "") query.set("q", q);
  if (labels !== "") query.set("labels", labels);
  if (zone !== "") query.set("zone", zone);
  if (show !== "all") query.set("show", show);
  if (kubelet !== "") query.set("kubelet", kubelet);
  if (reason !== "") query.set("reason", reason);
  if (sort !== WORST_FIRST) query.set("sort", sort);
  if (order !== usualOrder(sort)) query.set("order", order);
  if (hours !== 24) query.set("hours", String(hours));
  if (page !== 1) query.set("page", String(page));
  const text = query.toString();
  return text === "" ? "/" : `/?${text}`;
}

/** The link to the same nodes as a file for spreadsheets. */
export function csvLink({ q, labels, zone, show, kubelet, reason, sort, order, hours }: FleetQuestion): string {
  const texts = { name: q, labelSelector: labels, zone, show: show === "all" ? "" : show, kubelet, reason };
  const given = Object.entries(texts).filter(([, text]) => text !== "");
  return `/v1/nodes?${new URLSearchParams([...given, ["sort", sort], ["order", order], ["hours", String(hours)], ["format", "csv"]]).toString()}`;
}
