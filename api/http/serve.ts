import type { Context } from "hono";
import type { Store } from "../../db/store.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { ApiDeps, OffThread, Reply, RequestSpan, SpanAttributes, WhenSent } from "../dependencies.ts";
import { errorFields } from "../observe/log.ts";
import type { Evaluate } from "../service/evaluation.ts";
import { type Problem, problem } from "../service/problem.ts";
import { ANONYMOUS, type Identified, INTERNAL, identify, isForeign, nameOf, requireScope } from "./auth/authorize.ts";
import { setCookie } from "./auth/session.ts";
import { bytesInFlight } from "./body.ts";
import { type BodyBudget, bodyBudget } from "./body-budget.ts";
import { answerOffThread } from "./off-thread.ts";
import { respond } from "./respond.ts";
import type { Exchange, Route } from "./route.ts";
import { nodeTurns, withWaiting } from "./turns.ts";

/** Remembers the last answer that failed because of a damaged file, in any thread, until the same answer succeeds. */
class DamageStatus {
  #last: { readonly path: string; readonly message: string } | null = null;

  observe(path: string, outcome: Result<unknown, Problem>): void {
    if (!outcome.ok && outcome.error.isDamaged === true) this.#last = { path, message: outcome.error.detail };
    else if (outcome.ok && this.#last?.path === path) this.#last = null;
  }

  /** The store; it is not ready while damage is known, since its own check may read only undamaged parts. */
  over(store: Store): Store {
    return {
      ...store,
      ready: async (nowMs) =>
        this.#last === null ? store.ready(nowMs) : err({ code: "corrupt", message: this.#last.message }),
    };
  }
}

/** A key in the environment of a request that marks the program's own requests. No header can set it. */
export const TRUSTED: unique symbol = Symbol("nodewise.trusted");

const isTrusted = (c: Context): boolean => (c.env as { [TRUSTED]?: boolean } | undefined)?.[TRUSTED] === true;

const GIVEN_ID = /^[\w.:-]{1,64}$/;

interface Server {
  route(route: Route, c: Context): Promise<Response>;
  wrongMethod(allow: string, c: Context): Promise<Response>;
  notFound(c: Context): Promise<Response>;
  fault(error: unknown, c: Context): Promise<Response>;
}

/** Builds the server. Every request passes the same steps: name, caller, queue, log line, counters, answer. */
export function server(given: ApiDeps, problemPage: ProblemPage): Server {
  const damage = new DamageStatus();
  const turns = nodeTurns(given);
  const deps: ApiDeps = { ...given, turns, store: damage.over(withWaiting(given.store, turns)) };
  const context: ServeContext = {
    queue: gate(deps.limits.concurrency),
    budget: bodyBudget(bytesInFlight(deps.limits)),
    damage,
    problemPage,
  };
  return {
    route: (route, c) => serve(deps, context, route, c),
    wrongMethod: (allow, c) =>
      serveProblem(
        deps,
        context,
        c,
        problem(
          "method_not_allowed",
          `${c.req.method} is not possible here; ${allow} ${allow.includes(",") ? "are" : "is"}`,
          { headers: { allow } },
        ),
      ),
    notFound: (c) =>
      serveProblem(deps, context, c, problem("not_found", `there is no route \`${c.req.path.slice(0, 200)}\``)),
    fault: (error, c) => serveProblem(deps, context, c, fault(deps, requestIdOf(c), error)),
  };
}

/** A problem as the page that a browser shows. */
type ProblemPage = (problem: Problem, requestId: string, path: string) => Promise<Result<Reply, never>>;

interface ServeContext {
  readonly queue: Gate;
  readonly budget: BodyBudget;
  readonly damage: DamageStatus;
  readonly problemPage: ProblemPage;
}

async function serve(deps: ApiDeps, context: ServeContext, route: Route, c: Context): Promise<Response> {
  const { queue, budget, damage } = context;
  const held = budget();
  const { signal } = c.req.raw;
  const started = performance.now();
  const requestId = requestIdOf(c);
  const span = isTrusted(c) ? undefined : deps.tracing?.request(c.req.raw, c.env, requestId);
  let known: Identified | null = null;
  let leave: (() => void) | null = null;
  let outcome: Result<Reply, Problem>;
  try {
    const admitted = await admit(deps, route, c);
    if (admitted.ok) known = admitted.value;
    const entered = admitted.ok && route.scope !== null ? queue(admitted.value.caller.id) : ok(null);
    if (entered.ok) leave = entered.value;
    if (!admitted.ok) outcome = admitted;
    else
      outcome = entered.ok
        ? await handle(route, { ...tracedBy(deps, span), c, caller: admitted.value.caller, requestId, held, signal })
        : entered;
  } catch (error) {
    outcome = fault(deps, requestId, error);
  }
  // /readyz itself only repeats what was seen elsewhere
  if (route.scope !== null) damage.observe(c.req.path, outcome);
  const isPage = route.page === true && wantsPage(c);
  const shown = outcome.ok || !isPage ? outcome : await pageOf(context, outcome.error, requestId, c);
  const response = await respond(deps, c, requestId, shown);
  const { status } = response;
  if (known?.session != null && route.page === true)
    response.headers.append("set-cookie", setCookie(c, deps.auth, known.session));
  const end = (): void => {
    const own = outcome.ok && outcome.value.ownsBytes === true ? (outcome.value.body as Uint8Array<ArrayBuffer>) : null;
    if (leave !== null || own !== null)
      (deps.whenSent ?? atOnce)(c.env, (isUnused) => {
        leave?.();
        // V8 would collect garbage of the whole heap for every 8 MB of such bytes
        if (isUnused) own?.buffer.transfer(0);
      });
    held.leave();
    account(deps, c, { route: route.path, requestId, caller: known?.caller.id, started, outcome, status, span });
  };
  const streaming = outcome.ok ? outcome.value.done : undefined;
  if (streaming === undefined) end();
  else void streaming.then(end, end);
  return response;
}

const atOnce: WhenSent = (_env, onSent) => onSent(false);

async function handle(route: Route, exchange: Exchange): Promise<Result<Reply, Problem>> {
  // a reader of a node, or of its outcomes, should see what is still to be written
  const isRead = route.scope === "read" || route.path === "/v1/nodes/:node/outcomes";
  if (isRead) await exchange.deps.turns?.flushForReader(exchange.c.req.param("node"));
  return route.offThread === true && exchange.deps.offThread !== undefined
    ? answerOffThread(route, exchange)
    : route.handle(exchange);
}

async function admit(deps: ApiDeps, route: Route, c: Context): Promise<Result<Identified, Problem>> {
  if (isTrusted(c)) return ok({ caller: INTERNAL, session: null });
  const { req } = c;
  const host = req.header("host") ?? new URL(req.url).host;
  const forwarded =
    deps.auth.trustForwardedHost === true ? req.header("x-forwarded-host")?.split(",")[0]?.trim() : undefined;
  const [origin, site] = [req.header("origin"), req.header("sec-fetch-site")];
  if (isForeign({ method: req.method, host: forwarded ?? host, origin, site }))
    return foreign(origin, forwarded ?? host);
  if (route.scope === null) return ok({ caller: ANONYMOUS, session: null });
  const known = await identify(deps, {
    authorization: req.header("authorization"),
    cookie: req.header("cookie"),
    hosts: [host, ...(forwarded === undefined ? [] : [forwarded])].map(nameOf),
    basic: route.page === true || route.method === "GET",
    isBrowser: isOfBrowser(c),
  });
  if (!known.ok) return known;
  const scoped = requireScope(known.value.caller, route.scope ?? "read");
  return scoped.ok ? known : scoped;
}

const foreign = (origin: string | undefined, host: string): Result<never, Problem> =>
  problem(
    "forbidden_site",
    `a page of another site${origin === undefined ? "" : ` (\`${origin.slice(0, 253)}\`)`} made a browser send this to \`${host.slice(0, 253)}\``,
  );

async function serveProblem(
  deps: ApiDeps,
  context: ServeContext,
  c: Context,
  outcome: Result<Reply, Problem>,
): Promise<Response> {
  const requestId = requestIdOf(c);
  const span = deps.tracing?.request(c.req.raw, c.env, requestId);
  const shown = outcome.ok || !wantsPage(c) ? outcome : await pageOf(context, outcome.error, requestId, c);
  const response = await respond(deps, c, requestId, shown);
  account(deps, c, {
    route: NO_ROUTE,
    requestId,
    caller: undefined,
    started: performance.now(),
    outcome,
    status: response.status,
    span,
  });
  return response;
}

/** Browsers name HTML, other callers do not. */
const wantsPage = (c: Context): boolean => /\btext\/html\b/.test(c.req.header("accept") ?? "");
/** Over plain HTTP beyond loopback a page's own requests have a Referer alone. */
const isOfBrowser = (c: Context): boolean =>
  ["sec-fetch-site", "referer"].some((name) => c.req.header(name) !== undefined) ||
  /\btext\/(?:html|event-stream)\b/.test(c.req.header("accept") ?? "");

/** The same problem as a page, with its own status and headers. */
async function pageOf(
  { problemPage }: ServeContext,
  problem: Problem,
  requestId: string,
  { req }: Context,
): Promise<Result<Reply, Problem>> {
  const { pathname, search } = new URL(req.url);
  const shown = await problemPage(problem, requestId, req.method === "GET" ? pathname + search : pathname);
  return shown.ok ? ok({ ...shown.value, headers: { ...shown.value.headers, ...problem.headers } }) : shown;
}

function fault(deps: ApiDeps, requestId: string, error: unknown): Result<never, Problem> {
  deps.log.error({ requestId, ...errorFields(error) }, "internal fault");
  return problem("internal", `an internal fault; the log has it under requestId \`${requestId}\``);
}

function requestIdOf(c: Context): string {
  const given = c.req.header("x-request-id");
  return given !== undefined && GIVEN_ID.test(given) ? given : crypto.randomUUID();
}

/** The route's name in metrics if no route matches. */
const NO_ROUTE = "(none)";

interface Account {
  readonly route: string;
  readonly requestId: string;
  readonly caller: string | undefined;
  readonly started: number;
  readonly outcome: Result<Reply, Problem>;
  readonly status: number;
  readonly span: RequestSpan | undefined;
}

function account(deps: ApiDeps, c: Context, account: Account): void {
  const { route, requestId, caller, started, outcome, status, span } = account;
  const ms = performance.now() - started;
  const { method } = c.req;
  deps.metrics.request(route, method, status, ms / 1000);
  const code = outcome.ok ? undefined : outcome.error.code;
  span?.end({ route: route === NO_ROUTE ? null : route, status, code });
  const rounded = Math.round(ms * 100) / 100;
  const trace = span === undefined ? {} : { traceId: span.traceId };
  deps.log.info({ requestId, ...trace, method, path: c.req.path, status, ms: rounded, caller, code }, "request");
}

/** Answers a function that gives the place back. Errors: the caller has too many requests under way. */
type Gate = (callerId: string) => Result<() => void, Problem>;

/** Lets each caller have `limit` requests under way. */
function gate(limit: number): Gate {
  const underWay = new Map<string, number>();
  return (callerId) => {
    const count = underWay.get(callerId) ?? 0;
    if (count >= limit) {
      return problem("too_many_requests", `${count} requests of this caller are under way, which is the limit`, {
        headers: { "retry-after": "1" },
      });
    }
    underWay.set(callerId, count + 1);
    return ok(() => {
      const left = (underWay.get(callerId) ?? 1) - 1;
      if (left === 0) underWay.delete(callerId);
      else underWay.set(callerId, left);
    });
  };
}

/** The dependencies of a request by which it decides and records, each use of them with a span below its own. */
function tracedBy(
  deps: ApiDeps,
  span: RequestSpan | undefined,
): { readonly deps: ApiDeps; readonly span?: RequestSpan } {
  if (span === undefined) return { deps };
  const { store, evaluate, offThread } = deps;
  const traced = {
    ...deps,
    store: { ...store, record: recordingIn(span, store) },
    evaluate: decidingIn(span, evaluate),
    ...(offThread === undefined ? {} : { offThread: { ...offThread, decide: elsewhereIn(span, offThread) } }),
  };
  return { deps: traced, span };
}

const decidingIn =
  (span: RequestSpan, evaluate: Evaluate): Evaluate =>
  async (job) => {
    const started = performance.now();
    const made = await evaluate(job);
    // the request is repeated with what the decision needs
    if (made.state === "wants_snapshot" || made.state === "wants_facts") return made;
    if (made.state === "invalid") span.child("decide", started, kindOf(job.kind), made.problem.code);
    else if (made.state === "refused")
      span.child("decide", started, { ...kindOf(made.kind), "nodewise.node": made.node }, made.problem.code);
    else span.child("decide", started, attributesOf(made));
    return made;
  };

const recordingIn =
  (span: RequestSpan, store: Pick<Store, "record">): Store["record"] =>
  async (recording) => {
    const started = performance.now();
    const recorded = await store.record(recording);
    const { kind, node, id } = recording.decision;
    const decisionId = recorded.ok ? recorded.value.decisionId : id;
    const error = recorded.ok ? undefined : recorded.error.code;
    span.child(
      "record",
      started,
      { ...kindOf(kind), "nodewise.node": node, "nodewise.decision.id": decisionId },
      error,
    );
    return recorded;
  };

/** Spans of what a thread decides and records. */
const elsewhereIn =
  (span: RequestSpan, offThread: OffThread): OffThread["decide"] =>
  (asked, bytes, signal) => {
    let started = performance.now();
    let recorded: SpanAttributes | null = null;
    const answer = offThread.decide(asked, bytes, signal, (head) => {
      span.child("decide", started, attributesOf(head));
      started = performance.now();
      recorded = { ...kindOf(head.kind), "nodewise.node": head.node, "nodewise.decision.id": head.id };
    });
    return (
      answer?.then((made) => {
        const error = made.ok ? undefined : made.error.code;
        span.child(recorded === null ? "decide" : "record", started, recorded ?? kindOf(asked.kind), error);
        return made;
      }) ?? null
    );
  };

const kindOf = (kind: string | null): SpanAttributes => (kind === null ? {} : { "nodewise.kind": kind });
const attributesOf = (of: {
  readonly kind: string;
  readonly node: string;
  readonly verdict: string;
}): SpanAttributes => ({
  ...kindOf(of.kind),
  "nodewise.node": of.node,
  "nodewise.verdict": of.verdict,
});
