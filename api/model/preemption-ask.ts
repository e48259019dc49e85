import * as z from "zod";
import { decodePodAsk, type PodAsk } from "./ask.ts";
import { issuesOf } from "./decode.ts";
import { optional, resourceName, text, wholeNumber } from "./fields.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { withoutNulls } from "./nulls.ts";
import { err, ok, type Result } from "./result.ts";

/** A resource that is short (thousandths of a CPU, else whole units), or a predicate that nobody's end can help. */
export type FailureReason =
  | { readonly resourceName: string; readonly requested: number; readonly used: number; readonly capacity: number }
  | { readonly predicateName: string };

/** A pod that is to fit, and why it does not. */
export interface PreemptionAsk extends PodAsk {
  /** What the kubelet's predicates failed with; absent: they are asked. */
  readonly failureReasons?: readonly FailureReason[];
}

/** What they add up to is exact. */
const amount = optional(wholeNumber(0, Math.floor(LIMITS.units / 4)));
const failureReason = z
  .strictObject({
    resourceName: optional(resourceName),
    requested: amount,
    used: amount,
    capacity: amount,
    predicateName: optional(text),
  })
  .transform((r, ctx): FailureReason => {
    const { resourceName, requested, used, capacity, predicateName } = r;
    const named = resourceName !== undefined && requested !== undefined && used !== undefined && capacity !== undefined;
    if (named && predicateName === undefined) return { resourceName, requested, used, capacity };
    if (predicateName !== undefined && Object.keys(r).length === 1) return { predicateName };
    ctx.addIssue({
      code: "custom",
      message: "must be a resourceName with requested, used and capacity, or a predicateName alone",
    });
    return z.NEVER;
  });
const failureReasons = z.array(failureReason).max(LIMITS.resourcesPerList);

/** Checks a posted ask and parses it once. Errors: every issue with its path. */
export function decodePreemptionAsk(input: unknown, at = "ask"): Result<PreemptionAsk, readonly InputIssue[]> {
  if (!isObject(input)) return decodePodAsk(input, at);
  const { failureReasons: posted, ...rest } = input;
  const ask = decodePodAsk(rest, at);
  if (!ask.ok || posted === undefined || posted === null) return ask;
  const parsed = failureReasons.safeParse(withoutNulls(posted));
  if (!parsed.success) return err(issuesOf(parsed.error, posted, joinPath(at, ["failureReasons"])));
  return ok({ ...ask.value, failureReasons: parsed.data });
}
const isObject = (v: unknown): v is Readonly<Record<string, unknown>> =>
  typeof v === "object" && v !== null && !Array.isArray(v);
