import type { InputIssue } from "../../model/decode.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Problem } from "../../routes/problem.ts";
import { type Exchange, queryOf, queryProblem } from "../../routes/route.ts";

export const SHOWS = ["all", "pressure", "refused", "evicted", "drift", "silent"] as const;
export type Shows = (typeof SHOWS)[number];
export const SORTS = ["name", "pressure", "refused", "evicted", "drift", "decisions", "seen"] as const;
export type Sort = (typeof SORTS)[number];
export const HOURS = [1, 6, 24, 168] as const;
const PARAMETERS = ["q", "show", "sort", "order", "hours", "page"] as const;

/** What of the fleet is to be seen: all of it is in the link. */
export interface FleetQuestion {
  /** Part of the node's name. */
  readonly q: string;
  readonly show: Shows;
  readonly sort: Sort;
  readonly order: "asc" | "desc";
  /** Counts go back so far. */
  readonly hours: number;
  /** From 1. */
  readonly page: number;
}

const MOST_PAGES = 9_999;

export function fleetQuestion(exchange: Exchange): Result<FleetQuestion, Problem> {
  const given = queryOf(exchange, PARAMETERS);
  if (!given.ok) return given;
  const { q = "", show = "all", sort = "name", order, hours = "24", page = "1" } = given.value;
  const issues: InputIssue[] = [];
  const among = <T extends string>(path: string, value: string, words: readonly T[]): T => {
    const found = words.find((word) => word === value);
    if (found === undefined) issues.push({ path, message: `must be one of ${words.join(", ")}` });
    return found ?? (words[0] as T);
  };
  const hour = among("hours", hours, HOURS.map(String));
  const place = /^\d{1,4}$/.test(page) ? Number(page) : 0;
  if (place < 1) issues.push({ path: "page", message: `must be a number from 1 to ${MOST_PAGES}` });
  const by = among("sort", sort, SORTS);
  const question: FleetQuestion = {
    q: q.trim().slice(0, 253),
    show: among("show", show, SHOWS),
    sort: by,
    order: among("order", order ?? (by === "name" ? "asc" : "desc"), ["asc", "desc"]),
    hours: Number(hour),
    page: place,
  };
  return issues.length === 0 ? ok(question) : queryProblem(issues);
}

/** The link to the same with some of it changed; what is as it would be anyway is left out. */
export function fleetLink(question: FleetQuestion, change: Partial<FleetQuestion>): string {
  const { q, show, sort, order, hours, page } = { ...question, page: 1, ...change };
  const query = new URLSearchParams();
  if (q !== "") query.set("q", q);
  if (show !== "all") query.set("show", show);
  if (sort !== "name") query.set("sort", sort);
  if (order !== (sort === "name" ? "asc" : "desc")) query.set("order", order);
  if (hours !== 24) query.set("hours", String(hours));
  if (page !== 1) query.set("page", String(page));
  const text = query.toString();
  return text === "" ? "/" : `/?${text}`;
}
