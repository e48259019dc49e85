import { err, ok, type Result } from "../../base/result.ts";
import { naturalOrder } from "./natural-order.ts";

/** A question that the kubelet would ask a plugin with GetPreferredAllocation. Ids are in natural order. */
export interface PreferredAllocationRequest {
  readonly resource: string;
  readonly available: readonly string[];
  /** Devices already chosen: reused ones, and aligned ones if all are taken. */
  readonly mustInclude: readonly string[];
  /** The total number of devices that the container gets. */
  readonly size: number;
}
/** Ids, best first; or the call's error; undefined: the plugin was not asked. */
type PreferredAnswer = Result<readonly string[], string> | undefined;
export type PreferredAllocation = (question: PreferredAllocationRequest) => PreferredAnswer;

/** A question with the plugin's answer: its ids or its error. */
export interface AnsweredRequest extends PreferredAllocationRequest {
  readonly deviceIds?: readonly string[] | undefined;
  readonly error?: string | undefined;
}
const keyOf = (q: PreferredAllocationRequest): string =>
  JSON.stringify([q.resource, q.size, [...q.available].sort(naturalOrder), [...q.mustInclude].sort(naturalOrder)]);

/** Answers a question as the plugin answered it before, in whatever order its ids are. */
export function recordedAnswers(answered: readonly AnsweredRequest[]): PreferredAllocation {
  const answers = new Map(answered.map((a) => [keyOf(a), a]));
  return (question) => {
    const answer = answers.size === 0 ? undefined : answers.get(keyOf(question));
    if (answer === undefined) return undefined;
    return answer.error === undefined ? ok(answer.deviceIds ?? []) : err(answer.error);
  };
}
