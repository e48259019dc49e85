import * as z from "zod";
import { issuesOf } from "./decode.ts";
import { optional, text } from "./fields.ts";
import type { InputIssue } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { withoutNulls } from "./nulls.ts";
import { err, ok, type Result } from "./result.ts";

/** What a collection is run for: its timer (`garbage-collect`), or a disk signal that the eviction manager reclaims. */
export const GC_OPERATIONS = ["garbage-collect", "delete-unused"] as const;
export type GcOperation = (typeof GC_OPERATIONS)[number];

/**
 * How a removal ended: `removed`; `failed`: the runtime refused, with its words in `message`; `stopped`: the pass ended
 * there, since what was found was no longer what the decision saw, nothing could be found out, or it was told to stop.
 */
export const REMOVAL_ENDS = ["removed", "failed", "stopped"] as const;
export const doneEntry = z.strictObject({
  id: text,
  /** Of an image that is kept for a runtime handler. */
  runtimeHandler: optional(text),
  end: z.enum(REMOVAL_ENDS),
  message: optional(text),
});
export type Done = Readonly<z.output<typeof doneEntry>>;
export const doneList = z.array(doneEntry).max(LIMITS.images + 4 * LIMITS.runtimeContainers);

/** An event as the kubelet records it for its node. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** `planned`: nothing was told of it in `ask.done`. */
export type RemovalState = "planned" | (typeof REMOVAL_ENDS)[number];

const operation = optional(z.enum(GC_OPERATIONS));
export const gcAsk = {
  operation,
  done: optional(doneList),
  /** What the runtime answered instead of its lists: the pass failed before it began, and nothing of the runtime is read. */
  error: optional(text),
};

/** Checks an ask; a null counts as lacking. Errors: every issue with its path. */
export function decodeGcAsk<S extends z.ZodType>(
  schema: S,
  input: unknown,
  at: string,
): Result<z.output<S>, readonly InputIssue[]> {
  const first = schema.safeParse(input ?? {});
  const parsed = first.success ? first : schema.safeParse(withoutNulls(input ?? {}));
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, input, at));
}
