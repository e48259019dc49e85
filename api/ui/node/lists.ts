import type { InputIssue } from "../../base/input-issue.ts";
import { notAmongIssue } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { type Exchange, queryOf, queryProblem } from "../../http/route.ts";
import type { Problem } from "../../service/problem.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";

interface Bounds {
  /** The part of the page that it is in. */
  readonly section: string;
  readonly title: string;
  /** Rows of it that the node's page shows. */
  readonly few: number;
  /** The number of rows on the list's own pages. */
  readonly rows: number;
}
/** Lists that may be longer than the node's page shows: each has pages of its own, at the same address. */
export const LISTS = {
  pods: { section: "pods", title: "Pods", few: 6, rows: 200 },
  cgroups: { section: "cgroups", title: "Cgroups", few: 128, rows: 256 },
  "cgroups-others": { section: "cgroups", title: "Other cgroups", few: 40, rows: 200 },
  "cpu-map": { section: "cpus", title: "Map of CPUs", few: 1024, rows: 1024 },
  cpus: { section: "cpus", title: "CPUs by owner", few: 100, rows: 500 },
  "cpu-changes": { section: "cpus", title: "Cpusets to change", few: 100, rows: 500 },
  memory: { section: "memory", title: "Holders of memory", few: 100, rows: 500 },
  resources: { section: "devices", title: "Resources of devices", few: 24, rows: 24 },
  "device-map": { section: "devices", title: "Map of devices", few: 512, rows: 1024 },
  devices: { section: "devices", title: "Holders of devices", few: 100, rows: 500 },
  claims: { section: "claims", title: "ResourceClaims", few: 30, rows: 200 },
  images: { section: "images", title: "Images", few: 30, rows: 200 },
  ranking: { section: "eviction", title: "Ranking", few: 5, rows: 200 },
  "failed-pods": { section: "pods", title: "Pods that failed", few: 4, rows: 200 },
} as const satisfies Readonly<Record<string, Bounds>>;
type ListName = keyof typeof LISTS;

/** A page of one list. */
export interface AskedList {
  readonly name: ListName;
  /** Which of several such lists, for example a resource; empty: there is only one. */
  readonly of: string;
  /** The page number, from 1. */
  readonly page: number;
}
const MAX_OF = 4096;

/** The time ranges of the plots, in milliseconds. */
export const PLOT_RANGES = { "1h": 3_600_000, "6h": 21_600_000, "1d": 86_400_000, "7d": 604_800_000 } as const;
export type PlotRange = keyof typeof PLOT_RANGES;

/** The part of a node's page that its link requests. */
interface AskedPart {
  /** The list; null: the whole page. */
  readonly list: AskedList | null;
  /** The time range; null: the newest passes. */
  readonly range: PlotRange | null;
}

/** The list or range in the link. Errors: an unknown list, page or range. */
export function askedPart(exchange: Exchange): Result<AskedPart, Problem> {
  const given = queryOf(exchange, ["list", "of", "page", "range"]);
  if (!given.ok) return given;
  const { list, of = "", page = "1", range } = given.value;
  const issues: InputIssue[] = [];
  if (range !== undefined && !Object.hasOwn(PLOT_RANGES, range))
    issues.push(notAmongIssue("range", range, Object.keys(PLOT_RANGES)));
  if (list === undefined) {
    const others = Object.keys(given.value).filter((path) => path !== "range");
    for (const path of others) issues.push({ path, message: "is allowed only with `list`" });
    if (issues.length > 0) return queryProblem(issues);
    return ok({ list: null, range: (range as PlotRange | undefined) ?? null });
  }
  if (range !== undefined) issues.push({ path: "range", message: "is allowed only without `list`" });
  if (!Object.hasOwn(LISTS, list)) issues.push(notAmongIssue("list", list, Object.keys(LISTS)));
  if (of.length > MAX_OF) issues.push({ path: "of", message: `has more than ${MAX_OF} characters` });
  if (!/^[1-9]\d{0,4}$/.test(page)) issues.push({ path: "page", message: "must be a number from 1 to 99999" });
  if (issues.length > 0) return queryProblem(issues);
  return ok({ list: { name: list as ListName, of, page: Number(page) }, range: null });
}

/** The rows from `from` to before `to`, and the text below them. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly note: Html | "";
}

/** Limits the lists of one page: to their first rows, or one of them to a page. */
export class ListView {
  readonly node: string;
  readonly asked: AskedList | null;
  #found = false;

  constructor(node: string, asked: AskedList | null = null) {
    this.node = node;
    this.asked = asked;
  }

  /** Whether the requested list was found. */
  get found(): boolean {
    return this.#found;
  }

  isAsked(name: ListName, of = ""): boolean {
    return this.asked?.name === name && this.asked.of === of;
  }

  link(name: ListName, of = "", page = 1): string {
    const query = new URLSearchParams({
      list: name,
      ...(of === "" ? {} : { of }),
      ...(page === 1 ? {} : { page: `${page}` }),
    });
    return `/nodes/${encodeURIComponent(this.node)}?${query}`;
  }

  /**
   * The span of `total` rows: the requested page (or the last, if there are fewer pages), otherwise the first
   * `few`.
   */
  span(name: ListName, total: number, of = "", few: number = LISTS[name].few): Span {
    if (!this.isAsked(name, of)) {
      const to = Math.min(few, total);
      const note = html`<p class="small rest">${number(to)} of ${number(total)} shown · <a href="${this.link(name, of)}">all</a></p>`;
      return { from: 0, to, note: to === total ? "" : note };
    }
    this.#found = true;
    const { rows } = LISTS[name];
    const pages = Math.max(1, Math.ceil(total / rows));
    const page = Math.min(pages, this.asked?.page ?? 1);
    const from = (page - 1) * rows;
    const to = Math.min(total, from + rows);
    const at = (other: number, rel: string, words: string): Html | "" =>
      other < 1 || other > pages ? "" : html`<a rel="${rel}" href="${this.link(name, of, other)}">${words}</a>`;
    const range = total === 0 ? "none" : `${number(from + 1)} to ${number(to)} of ${number(total)}`;
    const note = html`<nav class="pages" aria-label="Pages of the list">${at(page - 1, "prev", "← before")}<span class="soft">${range}</span>${at(page + 1, "next", "next →")}</nav>`;
    return { from, to, note };
  }

  /** The rows themselves. */
  cut<T>(name: ListName, all: readonly T[], of = "", few: number = LISTS[name].few): ListSlice<T> {
    const { from, to, note } = this.span(name, all.length, of, few);
    return { shown: all.slice(from, to), note };
  }
}
interface ListSlice<T> {
  readonly shown: readonly T[];
  readonly note: Html | "";
}

const number = (count: number): string => count.toLocaleString("en");
