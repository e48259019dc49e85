import type { Context } from "hono";
import { ANONYMOUS, type Caller, INTERNAL, identify, requireScope } from "../auth/authorize.ts";
import { ok, type Result } from "../model/result.ts";
import { errorFields } from "../observe/log.ts";
import type { Ports } from "../ports.ts";
import { problemPage } from "../ui/problem-page.ts";
import { type Gate, gate } from "./gate.ts";
import { type Problem, problem } from "./problem.ts";
import { respond } from "./respond.ts";
import type { Reply, Route } from "./route.ts";

/** Set in the environment of a request, it says that the program itself asks. No header can say so. */
export const TRUSTED: unique symbol = Symbol("nodewise.trusted");

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
  const isPage = route.page === true && wantsPage(c);
  const shown = outcome.ok || !isPage ? outcome : await pageOf(outcome.error, requestId);
  const response = await respond(ports, c, requestId, shown);
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
  if (route.page === true && isForeign(c))
    return problem("forbidden_site", "a page of another site sent this form with a browser's own credentials");
  if ((c.env as { [TRUSTED]?: boolean } | undefined)?.[TRUSTED] === true) return ok(INTERNAL);
  const authorization = c.req.header("authorization");
  const caller = await identify(ports, {
    authorization,
    host: hostOf(c),
    basic: route.page === true || route.method === "GET",
    isPage: route.page === true,
  });
  if (!caller.ok) return caller;
  const scoped = requireScope(caller.value, route.scope ?? "read");
  return scoped.ok ? caller : scoped;
}

/** What another site's page makes a browser send. Browsers say so themselves; links may come from anywhere. */
function isForeign({ req }: Context): boolean {
  const site = req.header("sec-fetch-site");
  return req.method === "POST" && site !== undefined && site !== "same-origin" && site !== "none";
}

/** Lower case, without the port. */
function hostOf(c: Context): string {
  const host = c.req.header("host") ?? new URL(c.req.url).host;
  return host.toLowerCase().replace(/:\d*$/, "");
}

async function serveProblem(ports: Ports, c: Context, outcome: Result<Reply, Problem>): Promise<Response> {
  const requestId = requestIdOf(c);
  const shown = outcome.ok || !wantsPage(c) ? outcome : await pageOf(outcome.error, requestId);
  const response = await respond(ports, c, requestId, shown);
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

/** Browsers name HTML, other callers do not. */
const wantsPage = (c: Context): boolean => /\btext\/html\b/.test(c.req.header("accept") ?? "");

/** The same problem as a page, with its own status and headers. */
async function pageOf(problem: Problem, requestId: string): Promise<Result<Reply, Problem>> {
  const shown = await problemPage(problem, requestId);
  return shown.ok ? ok({ ...shown.value, headers: { ...shown.value.headers, ...problem.headers } }) : shown;
}

function fault(ports: Ports, requestId: string, error: unknown): Result<never, Problem> {
  ports.log.error({ requestId, ...errorFields(error) }, "internal fault");
  return problem("internal", `an internal fault; the log has it under requestId \`${requestId}\``);
}

function requestIdOf(c: Context): string {
  const given = c.req.header("x-request-id");
  return given !== undefined && GIVEN_ID.test(given) ? given : crypto.randomUUID();
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
