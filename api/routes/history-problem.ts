import type { StoreFailure } from "../../db/failure.ts";
import { err, type Result } from "../model/result.ts";
import type { Problem } from "./problem.ts";

/** What a caller is told when the history fails where its answer is needed. */
export function storeProblem({ code, message }: StoreFailure): Problem {
  switch (code) {
    case "bad_page_token":
      return { code: "invalid_query", detail: message, issues: [{ path: "pageToken", message }] };
    case "too_large":
      return { code: "body_too_large", detail: message };
    default:
      return { code: "history_unavailable", detail: message, headers: { "retry-after": "5" } };
  }
}

export const historyProblem = (failure: StoreFailure): Result<never, Problem> => err(storeProblem(failure));
