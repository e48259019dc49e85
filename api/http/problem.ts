import type { Problem, ProblemCode } from "../service/problem.ts";

interface Kind {
  readonly status: number;
  readonly title: string;
  /** The advice for a caller, unless the problem itself has a better one. */
  readonly advice: string;
}

/** The one table from a code to its HTTP status. Closed: a code that is not here is never answered. */
export const PROBLEMS = {
  bad_request: { status: 400, title: "the request is not valid HTTP", advice: "check the URL and the headers" },
  malformed_body: {
    status: 400,
    title: "the body cannot be read",
    advice: "send the whole body as its headers announce it",
  },
  malformed_json: { status: 400, title: "the body is not JSON", advice: "correct the text at the position named" },
  invalid_input: {
    status: 400,
    title: "the input is not valid",
    advice: "correct every path listed in issues; /openapi.json has the schema",
  },
  invalid_query: {
    status: 400,
    title: "the query is not valid",
    advice: "correct the parameters listed in issues; /docs lists them",
  },
  too_many_bad_lines: {
    status: 400,
    title: "too many lines of the batch are wrong",
    advice: "correct the lines before it, then send the rest from the line named",
  },
  unauthorized: {
    status: 401,
    title: "a token is required",
    advice:
      "send `Authorization: Bearer nw_...`, or Basic with the token as the password for GET requests; in a browser open /sign-in. `nodewise token create` makes one",
  },
  forbidden: {
    status: 403,
    title: "the token or the session does not allow this",
    advice: "use a token with the scope named",
  },
  forbidden_node: {
    status: 403,
    title: "the token acts for another node",
    advice: "use the node's own token, or one that is bound to none",
  },
  forbidden_host: {
    status: 403,
    title: "the Host header names another host",
    advice: "open the API by its address, or start it with this host allowed",
  },
  forbidden_site: {
    status: 403,
    title: "another site's page sent this",
    advice:
      "open the page here, and send its own form; behind a reverse proxy pass Host on, or set X-Forwarded-Host and start the API with --trust-forwarded-host",
  },
  not_found: { status: 404, title: "there is nothing here", advice: "/docs lists every route" },
  unknown_kind: { status: 404, title: "there is no such decision kind", advice: "use one of the kinds named" },
  unknown_snapshot: {
    status: 404,
    title: "the history has no such snapshot",
    advice: "post the snapshot itself; old ones are removed",
  },
  unknown_decision: {
    status: 404,
    title: "the history has no such decision",
    advice: "old ones are removed; /v1/nodes/NODE/decisions lists what is there",
  },
  unknown_node: {
    status: 404,
    title: "the history has no such node",
    advice:
      "/v1/nodes lists what is there; nodes that have reported nothing for as long as history is kept are removed",
  },
  method_not_allowed: {
    status: 405,
    title: "this route has no such method",
    advice: "use a method of the Allow header",
  },
  request_timeout: { status: 408, title: "the request took too long to arrive", advice: "send it again, faster" },
  idempotency_conflict: {
    status: 409,
    title: "the idempotency key belongs to another request",
    advice: "use a new key for a new request",
  },
  unknown_base: {
    status: 409,
    title: "the node's snapshot that the changes begin with is not known here",
    advice: "post the whole snapshot in `snapshot`, without base and changes; later turns may begin with it",
  },
  body_too_large: {
    status: 413,
    title: "the body is too large",
    advice: "leave out what no decision reads, or post less at a time",
  },
  unsupported_media_type: {
    status: 415,
    title: "the content type is not supported",
    advice: "send JSON with `Content-Type: application/json`",
  },
  unsupported_encoding: {
    status: 415,
    title: "the content encoding is not supported",
    advice: "use an encoding of the Accept-Encoding header, or none",
  },
  expectation_failed: {
    status: 417,
    title: "the Expect header asks for what this server does not do",
    advice: "send `Expect: 100-continue`, or leave it out",
  },
  needs_input: {
    status: 422,
    title: "the snapshot lacks what the decision needs",
    advice: "add what `needs` lists to the snapshot",
  },
  invalid_configuration: {
    status: 422,
    title: "the kubelet would not start with this configuration",
    advice: "correct the configuration",
  },
  invalid_state: {
    status: 422,
    title: "a state file of the kubelet cannot be read",
    advice: "post the file as it is on the node's disk, or leave it out",
  },
  too_large: {
    status: 422,
    title: "an answer would take longer than this server allows",
    advice: "ask about a smaller machine, or with fewer hints",
  },
  no_such_pod: { status: 422, title: "the snapshot has no such pod", advice: "add the pod to snapshot.pods" },
  unknown_policy_version: {
    status: 422,
    title: "this server does not have that policy version",
    advice: "leave policyVersion out, or ask a server of that version",
  },
  snapshot_gone: {
    status: 422,
    title: "the decision's snapshot is no longer stored",
    advice: "post the snapshot again as a new decision",
  },
  too_many_requests: {
    status: 429,
    title: "too many requests are under way",
    advice: "wait as long as Retry-After says, then send it again",
  },
  headers_too_large: { status: 431, title: "the headers are too large", advice: "send fewer or shorter headers" },
  internal: {
    status: 500,
    title: "the server failed",
    advice: "look for the requestId in the server's log, and report it",
  },
  overloaded: {
    status: 503,
    title: "the server holds as much as it may",
    advice: "wait as long as Retry-After says, then send it again; `--max-bytes-in-flight` gives the server more room",
  },
  history_unavailable: {
    status: 503,
    title: "the history cannot be used now",
    advice: "try again; the server's log has the cause",
  },
} as const satisfies Readonly<Record<ProblemCode, Kind>>;

/** Returns the advice for a problem. */
export const adviceOf = (p: Problem): string => p.advice ?? PROBLEMS[p.code].advice;
export const titleOf = (p: Problem): string => PROBLEMS[p.code].title;
export const statusOf = ({ code }: Problem): number => PROBLEMS[code].status;
export const PROBLEM_TYPE = "application/problem+json";

/** The RFC 9457 document as JSON text. `type` is a reference to the code's entry in the docs. */
export function problemText(p: Problem, requestId: string): string {
  const { status, title } = PROBLEMS[p.code];
  return JSON.stringify({
    type: `/docs#${p.code}`,
    title,
    status,
    detail: p.detail,
    code: p.code,
    advice: adviceOf(p),
    issues: p.issues,
    needs: p.needs,
    near: p.near,
    requestId,
  });
}

/** A problem for a line of a batch, without the parts that the docs explain by `code` and the headers contain. */
export const lineProblemText = ({ code, detail, issues, needs }: Problem): string =>
  JSON.stringify({ code, detail, issues, needs });
