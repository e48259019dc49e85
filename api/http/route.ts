import type { Context } from "hono";
import type { DecisionRow, SnapshotRow } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { similarName, suggestionText } from "../base/near-name.ts";
import { ok, type Result } from "../base/result.ts";
import type { ApiDeps, Caller, Reply, RequestSpan, Scope } from "../dependencies.ts";
import { decisionNamed, notFoundText } from "../service/decision-named.ts";
import { historyProblem, type Problem, problem } from "../service/problem.ts";
import { mayAccessNode } from "./auth/authorize.ts";
import type { BudgetLease } from "./body-budget.ts";

/** One request on its way through a route. */
export interface Exchange {
  readonly deps: ApiDeps;
  readonly c: Context;
  readonly caller: Caller;
  readonly requestId: string;
  /** The request's part of the memory that all bodies share; it is given back when the request is answered. */
  readonly held: BudgetLease;
  /** Aborted when the client disconnects: work for it ends. */
  readonly signal: AbortSignal;
  /** The span; absent: tracing is off. */
  readonly span?: RequestSpan;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT";
  /** As Hono reads it: `/v1/nodes/:node`. */
  readonly path: string;
  /** The required scope; null: open to everyone. */
  readonly scope: Scope | null;
  /** A page for browsers: Basic authentication works too, and the answer is HTML. */
  readonly page?: boolean;
  /**
   * True: the handler may take long, only reads the history, and answers in one piece; a thread runs it if there are
   * threads.
   */
  readonly offThread?: true;
  readonly handle: (exchange: Exchange) => Promise<Result<Reply, Problem>> | Result<Reply, Problem>;
}

export const JSON_TYPE = "application/json; charset=utf-8";
/** A reply of text that is JSON already. */
export const jsonText = (body: string | Uint8Array<ArrayBuffer>, status = 200): Result<Reply, never> =>
  ok({ status, type: JSON_TYPE, body, ...(typeof body === "string" ? {} : { ownsBytes: true }) });
export const json = (value: unknown, status = 200): Result<Reply, never> => jsonText(JSON.stringify(value), status);

/** Rows of one answer in CSV: more than one page of JSON, since a spreadsheet asks for no next page. */
export const MAX_CSV_ROWS = 10_000;

/** Whether the answer is to be CSV: `format` says so, or else the Accept header. Errors: another format. */
export function wantsCsv({ c }: Exchange, format: string | undefined): Result<boolean, Problem> {
  if (format === undefined) return ok(/\btext\/csv\b/.test(c.req.header("accept") ?? ""));
  if (format === "csv" || format === "json") return ok(format === "csv");
  return queryProblem([{ path: "format", message: "must be one of json, csv" }]);
}

/** A list as a CSV file; where there are more rows, the header `Link` leads to them (RFC 8288). */
export function csv({ c }: Exchange, body: string, name: string, nextPageToken: string | null): Result<Reply, never> {
  const next = new URL(c.req.url).searchParams;
  if (nextPageToken !== null) next.set("pageToken", nextPageToken);
  const headers = {
    "content-disposition": `attachment; filename="${name}.csv"`,
    vary: "accept",
    ...(nextPageToken === null ? {} : { link: `<?${next.toString()}>; rel="next"` }),
  };
  return ok({ status: 200, type: "text/csv; charset=utf-8; header=present", body, headers });
}

/** A path parameter, decoded. */
export const param = ({ c }: Exchange, name: string): string => c.req.param(name) ?? "";

/** The query's parameters, once each. Errors: one that the route does not know, or one given twice. */
export function queryOf<Name extends string>(
  { c }: Exchange,
  names: readonly Name[],
): Result<Readonly<Partial<Record<Name, string>>>, Problem> {
  const issues: InputIssue[] = [];
  const given: Partial<Record<Name, string>> = {};
  for (const [name, values] of Object.entries(c.req.queries())) {
    if (!(names as readonly string[]).includes(name)) {
      const [near, proposal] = [similarName(name, names), suggestionText(name, names)];
      const known = `there is no such parameter; there are ${names.join(", ") || "none"}`;
      const message = proposal === null ? known : `${known}; ${proposal}`;
      issues.push({ path: name.slice(0, 64), message, ...(near === null ? {} : { near }) });
    } else if (values.length > 1) issues.push({ path: name, message: "given more than once" });
    else given[name as Name] = values[0] ?? "";
  }
  return issues.length === 0 ? ok(given) : queryProblem(issues);
}

export const queryProblem = (issues: readonly InputIssue[]): Result<never, Problem> =>
  problem("invalid_query", `${issues[0]?.path}: ${issues[0]?.message}`, { issues });

interface StoreAccess<Read extends keyof Store> extends Pick<Exchange, "caller"> {
  readonly deps: { readonly store: Pick<Store, Read> };
}

/**
 * Finds a decision by its id or the beginning of it. Errors: none exists, or it is of a node that the caller may not
 * see, which gives the same answer; or several match.
 */
export async function decisionSeen(
  { deps, caller }: StoreAccess<"getDecision" | "decisionsBeginning">,
  id: string,
): Promise<Result<DecisionRow, Problem>> {
  const found = await decisionNamed(deps.store, id, (node) => mayAccessNode(caller, node));
  if (!found.ok) return historyProblem(found.error);
  return found.value.row === null ? unknownDecision(id, found.value.ids) : ok(found.value.row);
}

/** The snapshot of this id. Errors: as of a decision. */
export async function snapshotSeen(
  { deps, caller }: StoreAccess<"getSnapshot">,
  id: string,
): Promise<Result<SnapshotRow, Problem>> {
  const found = await deps.store.getSnapshot(id);
  if (!found.ok) return historyProblem(found.error);
  return found.value !== null && mayAccessNode(caller, found.value.node) ? ok(found.value) : unknownSnapshot(id);
}

export const unknownDecision = (id: string, several: readonly string[] = []): Result<never, Problem> =>
  problem("unknown_decision", notFoundText(id, several));
const unknownSnapshot = (id: string): Result<never, Problem> =>
  problem("unknown_snapshot", `there is no snapshot \`${id.slice(0, 64)}\``);
