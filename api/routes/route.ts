import type { Context } from "hono";
import type { Caller } from "../auth/authorize.ts";
import type { Scope } from "../auth/token.ts";
import type { InputIssue } from "../model/decode.ts";
import { ok, type Result } from "../model/result.ts";
import type { Ports } from "../ports.ts";
import { type Problem, problem } from "./problem.ts";

/** One request on its way through a route. */
export interface Exchange {
  readonly ports: Ports;
  readonly c: Context;
  readonly caller: Caller;
  readonly requestId: string;
}

export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** True: always made anew, so it carries no ETag. */
  readonly untagged?: boolean;
  /** Settles when a streamed body is through; the request counts as under way until then. */
  readonly done?: Promise<void>;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT";
  /** As Hono reads it: `/v1/nodes/:node`. */
  readonly path: string;
  /** Null: open to everyone. */
  readonly scope: Scope | null;
  /** A page for browsers: Basic authentication works too, and the answer is HTML. */
  readonly page?: boolean;
  readonly handle: (exchange: Exchange) => Promise<Result<Reply, Problem>> | Result<Reply, Problem>;
}

export const JSON_TYPE = "application/json; charset=utf-8";
/** A reply of text that is JSON already. */
export const jsonText = (body: string, status = 200): Result<Reply, never> => ok({ status, type: JSON_TYPE, body });
export const json = (value: unknown, status = 200): Result<Reply, never> => jsonText(JSON.stringify(value), status);

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
      issues.push({
        path: name.slice(0, 64),
        message: `there is no such parameter; there are ${names.join(", ") || "none"}`,
      });
    } else if (values.length > 1) issues.push({ path: name, message: "given more than once" });
    else given[name as Name] = values[0] ?? "";
  }
  return issues.length === 0 ? ok(given) : queryProblem(issues);
}

export const queryProblem = (issues: readonly InputIssue[]): Result<never, Problem> =>
  problem("invalid_query", `${issues[0]?.path}: ${issues[0]?.message}`, { issues });

const [FIRST_MS, LAST_MS] = [Date.parse("0000-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")];
/** Milliseconds since the epoch as RFC 3339; what is damaged and no time, as the first or the last that it can tell. */
export const timeText = (ms: number): string => new Date(Math.max(FIRST_MS, Math.min(LAST_MS, ms))).toISOString();
