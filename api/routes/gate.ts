import { ok, type Result } from "../model/result.ts";
import { type Problem, problem } from "./problem.ts";

/** Answers a function that gives the place back. Errors: the caller has too many requests under way. */
export type Gate = (callerId: string) => Result<() => void, Problem>;

/** Lets each caller have `limit` requests under way. */
export function gate(limit: number): Gate {
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
