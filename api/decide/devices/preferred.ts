import { err, ok, type Result } from "../../model/result.ts";
import { naturalOrder } from "./natural-order.ts";

/** A question that the kubelet would ask a plugin with GetPreferredAllocation. Ids are in natural order. */
export interface PreferredAllocationRequest {
  readonly resource: string;
  readonly available: readonly string[];
  /** Chosen already: reused ones, and aligned ones that are all taken. */
  readonly mustInclude: readonly string[];
  /** How many devices the container gets in all. */
  readonly size: number;
}
/** Ids, best first; the error of the call; undefined where the plugin has not been asked. */
type PreferredAnswer = Result<readonly string[], string> | undefined;
export type PreferredAllocation = (question: PreferredAllocationRequest) => PreferredAnswer;

/** A question with the plugin's answer to it: its ids or its error. */
export interface AnsweredRequest extends PreferredAllocationRequest {
  readonly deviceIds?: readonly string[] | undefined;
  readonly error?: string | undefined;
}
const keyOf = (q: PreferredAllocationRequest): string =>
  JSON.stringify([q.resource, q.size, [...q.available].sort(naturalOrder), [...q.mustInclude].sort(naturalOrder)]);

/** Answers what a plugin has answered before to the same question, in whatever order the ids were. */
export function recordedAnswers(answered: readonly AnsweredRequest[]): PreferredAllocation {
  const answers = new Map(answered.map((a) => [keyOf(a), a]));
  return (question) => {
    const answer = answers.size === 0 ? undefined : answers.get(keyOf(question));
    if (answer === undefined) return undefined;
    return answer.error === undefined ? ok(answer.deviceIds ?? []) : err(answer.error);
  };
}
