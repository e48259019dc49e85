import type { Context } from "hono";
import { ANONYMOUS, type Caller, INTERNAL, identify, requireScope } from "../auth/authorize.ts";
import { ok, type Result } from "../model/result.ts";
import { errorFields } from "../observe/log.ts";
import type { Ports } from "../ports.ts";
import { type Gate, gate } from "./gate.ts";
import { PROBLEM_TYPE, type Problem, problem, problemText, statusOf } from "./problem.ts";
import type { Reply, Route } from "./route.ts";

/** Set in the environment of a request, it says that the program itself asks. No header can say so. */
export const TRUSTED: unique symbol = Symbol("nodewise.trusted");

const HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
} as const;
const GIVEN_ID = /^[\w.:-]{1,64}$/;

interface Server {
  route(route: Route, c: Context): Promise<Response>;
  wrongMethod(allow: string, c: Context): Promise<Response>;
  notFound(c: Context): Promise<Response>;
  fault(error: unknown, c: Context): Promise<Response>;
}

/** What every request goes through: a name, a caller, a place in the queue, a log line, a count, an answer. */
export function server(ports: Ports): Server {
  const queue = gate(ports.limits.concurrency);
  return {
    route: (route, c) => serve(ports, queue, route, c),
    wrongMethod: (allow, c) =>
      serveProblem(
        ports,
        c,
        problem(
          "method_not_allowed",
          `${c.req.method} is not possible here; ${allow} ${allow.includes(",") ? "are" : "is"}`,
          { headers: { allow } },
        ),
      ),
    notFound: (c) => serveProblem(ports, c, problem("not_found", `there is no route \`${c.req.path.slice(0, 200)}\``)),
    fault: (error, c) => serveProblem(ports, c, fault(ports, requestIdOf(c), error)),
  };
}

async function serve(ports: Ports, queue: Gate, route: Route, c: Context): Promise<Response> {
  const started = performance.now();
  const requestId = requestIdOf(c);
  let caller: Caller | null = null;
  let leave: (() => void) | null = null;
  let outcome: Result<Reply, Problem>;
  try {
    const admitted = route.scope === null ? ok(ANONYMOUS) : await admit(ports, route, c);
    if (admitted.ok) caller = admitted.value;
    const entered = admitted.ok && route.scope !== null ? queue(admitted.value.id) : ok(null);
    if (entered.ok) leave = entered.value;
    if (!admitted.ok) outcome = admitted;
    else outcome = entered.ok ? await route.handle({ ports, c, caller: admitted.value, requestId }) : entered;
  } catch (error) {
    outcome = fault(ports, requestId, error);
  }
  const response = await respond(ports, c, requestId, outcome);
  const { status } = response;
  const end = (): void => {
    leave?.();
    account(ports, c, { route: route.path, requestId, caller: caller?.id, started, outcome, status });
  };
  const streaming = outcome.ok ? outcome.value.done : undefined;
  if (streaming === undefined) end();
  else void streaming.then(end, end);
  return response;
}

async function admit(ports: Ports, route: Route, c: Context): Promise<Result<Caller, Problem>> {
  if ((c.env as { [TRUSTED]?: boolean } | undefined)?.[TRUSTED] === true) return ok(INTERNAL);
  const authorization = c.req.header("authorization");
  const caller = await identify(ports, { authorization, host: hostOf(c), basic: route.page === true });
  if (!caller.ok) return caller;
  const scoped = requireScope(caller.value, route.scope ?? "read");
  return scoped.ok ? caller : scoped;
}

/** Lower case, without the port. */
function hostOf(c: Context): string {
  const host = c.req.header("host") ?? new URL(c.req.url).host;
  return host.toLowerCase().replace(/:\d*$/, "");
}

async function serveProblem(ports: Ports, c: Context, outcome: Result<Reply, Problem>): Promise<Response> {
  const requestId = requestIdOf(c);
  const response = await respond(ports, c, requestId, outcome);
  account(ports, c, {
    route: "(none)",
    requestId,
    caller: undefined,
    started: performance.now(),
    outcome,
    status: response.status,
  });
  return response;
}

function fault(ports: Ports, requestId: string, error: unknown): Result<never, Problem> {
  ports.log.error({ requestId, ...errorFields(error) }, "internal fault");
  return problem("internal", `an internal fault; the log has it under requestId \`${requestId}\``);
}

function requestIdOf(c: Context): string {
  const given = c.req.header("x-request-id");
  return given !== undefined && GIVEN_ID.test(given) ? given : crypto.randomUUID();
}

async function respond(
  ports: Ports,
  c: Context,
  requestId: string,
  outcome: Result<Reply, Problem>,
): Promise<Response> {
  if (!outcome.ok) {
    const headers = {
      ...HEADERS,
      "content-type": PROBLEM_TYPE,
      "x-request-id": requestId,
      "cache-control": "no-store",
      ...outcome.error.headers,
    };
    return new Response(problemText(outcome.error, requestId), { status: statusOf(outcome.error), headers });
  }
  const { status, type, body, untagged } = outcome.value;
  const headers = {
    ...HEADERS,
    "content-type": type,
    "x-request-id": requestId,
    "cache-control": "no-store",
    ...outcome.value.headers,
  };
  const tags = (c.req.method === "GET" || c.req.method === "HEAD") && status === 200 && untagged !== true;
  if (!tags || typeof body !== "string") return new Response(body, { status, headers });
  const etag = `"${(await ports.sha256(body)).slice(0, 32)}"`;
  const tagged = { ...headers, etag, "cache-control": "private, no-cache" };
  const same = matches(c.req.header("if-none-match"), etag);
  return same ? new Response(null, { status: 304, headers: tagged }) : new Response(body, { status, headers: tagged });
}

/** RFC 9110 13.1.2: weak comparison. */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === "*" || header.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

interface Account {
  readonly route: string;
  readonly requestId: string;
  readonly caller: string | undefined;
  readonly started: number;
  readonly outcome: Result<Reply, Problem>;
  readonly status: number;
}

function account(ports: Ports, c: Context, { route, requestId, caller, started, outcome, status }: Account): void {
  const ms = performance.now() - started;
  const { method } = c.req;
  ports.metrics.request(route, method, status, ms / 1000);
  const code = outcome.ok ? undefined : outcome.error.code;
  ports.log.info(
    { requestId, method, path: c.req.path, status, ms: Math.round(ms * 100) / 100, caller, code },
    "request",
  );
}
