import type { StoreFailure } from "../../db/failure.ts";
import type { InputIssue } from "../base/input-issue.ts";
import { err, type Result } from "../base/result.ts";

const DAMAGED =
  "what is damaged stays so: stop the API and restore the history from a backup; the server's log has the cause";

/** The problem for a response that needs the history if reading it failed. */
export function storeProblem({ code, message, isRow }: StoreFailure): Problem {
  switch (code) {
    case "bad_page_token":
      return { code: "invalid_query", detail: message, issues: [{ path: "pageToken", message }] };
    case "too_large":
      return { code: "body_too_large", detail: message };
    case "corrupt":
      return { code: "history_unavailable", detail: message, advice: DAMAGED, isDamaged: isRow !== true };
    default:
      return { code: "history_unavailable", detail: message, headers: { "retry-after": "5" } };
  }
}

export const historyProblem = (failure: StoreFailure): Result<never, Problem> => err(storeProblem(failure));

/** Every error code of the API; http/problem.ts has the HTTP status, the title and the advice of each. */
export const PROBLEM_CODES = [
  "bad_request",
  "malformed_body",
  "malformed_json",
  "invalid_input",
  "invalid_query",
  "too_many_bad_lines",
  "unauthorized",
  "forbidden",
  "forbidden_node",
  "forbidden_host",
  "forbidden_site",
  "not_found",
  "unknown_kind",
  "unknown_snapshot",
  "unknown_decision",
  "unknown_node",
  "method_not_allowed",
  "request_timeout",
  "idempotency_conflict",
  "unknown_base",
  "body_too_large",
  "unsupported_media_type",
  "unsupported_encoding",
  "expectation_failed",
  "needs_input",
  "invalid_configuration",
  "invalid_state",
  "too_large",
  "no_such_pod",
  "unknown_policy_version",
  "snapshot_gone",
  "too_many_requests",
  "headers_too_large",
  "internal",
  "overloaded",
  "history_unavailable",
] as const;
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** An expected failure of a route. */
export interface Problem {
  readonly code: ProblemCode;
  /** What happened, in one line. */
  readonly detail: string;
  readonly advice?: string;
  readonly issues?: readonly InputIssue[];
  readonly needs?: readonly string[];
  /** Similar existing names, for a name that does not exist. */
  readonly near?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** For the server only: the history's file is damaged, not just one row. */
  readonly isDamaged?: boolean;
}

export const problem = (
  code: ProblemCode,
  detail: string,
  more: Omit<Problem, "code" | "detail"> = {},
): Result<never, Problem> => err({ code, detail, ...more });

/** One fault of the input. */
export const invalid = (path: string, message: string): Result<never, Problem> =>
  problem("invalid_input", `${path}: ${message}`, { issues: [{ path, message }] });

export function inputProblem(issues: readonly InputIssue[]): Problem {
  const [first] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return { code: "invalid_input", detail: `${first?.path}: ${first?.message}${more}`, issues };
}
