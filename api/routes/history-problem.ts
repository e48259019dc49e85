import type { StoreFailure } from "../../db/failure.ts";
import type { Result } from "../model/result.ts";
import { type Problem, problem } from "./problem.ts";

/** What a caller is told when the history fails where its answer is needed. */
export function historyProblem({ code, message }: StoreFailure): Result<never, Problem> {
  switch (code) {
    case "bad_page_token":
      return problem("invalid_query", message, { issues: [{ path: "pageToken", message }] });
    case "too_large":
      return problem("body_too_large", message);
    default:
      return problem("history_unavailable", message, { headers: { "retry-after": "5" } });
  }
}
