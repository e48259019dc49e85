import * as z from "zod";
import { issuesOf } from "./decode.ts";
import { count, optional, text, wholeNumber } from "./fields.ts";
import type { InputIssue } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { err, ok, type Result } from "./result.ts";

const REMOVED_KEPT = 1024;
const LATEST_MS = 8.64e15;
const atMs = wholeNumber(0, LATEST_MS);

/** What a kubelet remembers of its images from pass to pass, and loses when it restarts; history does not. Epoch ms. */
export const imageGcFacts = z.object({
  /** Of the last pass. */
  atMs,
  /** Since when this node is watched: no image is too old before imageMaximumGCAge has passed since. */
  beganAtMs: atMs,
  /** Whether the last pass ended in an error: the next one that does is told in an event. */
  failed: z.boolean(),
  /** [image id, first detected, last used or null, runtime handler if any], in the order of the list. */
  records: z.array(z.tuple([text, atMs, z.nullable(atMs)]).rest(text)).max(LIMITS.images),
  /** What was collected, newest last; `again`: how often it came back since. */
  removed: z
    .array(
      z.object({
        id: text,
        runtimeHandler: optional(text),
        names: z.array(text).max(LIMITS.imageNames),
        sizeBytes: count,
        atMs,
        times: count,
        again: count,
        /** True while it is not on the node. */
        away: z.boolean(),
        /** When it last came back. */
        againAtMs: optional(atMs),
        /** What was remembered of it, so that the same pass can be told again. */
        firstDetectedAtMs: optional(atMs),
        lastUsedAtMs: optional(atMs),
      }),
    )
    .max(REMOVED_KEPT),
});
export type ImageGcFacts = Readonly<z.output<typeof imageGcFacts>>;

type Records = ImageGcFacts["records"];

/**
 * Checks what history remembers of the kind (`facts["image-gc"]`); absent: a kubelet's first pass. Errors: every issue with
 * its path. Thousands of records that are plainly right are not put through the schema one by one, which takes ten times as
 * long; with any that is not, all of it is.
 */
export function decodeImageGcFacts(
  input: unknown,
  at = 'facts["image-gc"]',
): Result<ImageGcFacts | undefined, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok(undefined);
  const records = plainRecords(input);
  if (records !== undefined) {
    const rest = imageGcFacts.safeParse({ ...(input as object), records: [] });
    if (rest.success) return ok({ ...rest.data, records });
  }
  const parsed = imageGcFacts.safeParse(input);
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, input, at));
}

function plainRecords(input: unknown): Records | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input) || !("records" in input)) return undefined;
  const { records } = input;
  return Array.isArray(records) && records.length <= LIMITS.images && records.every(isPlain) ? records : undefined;
}

function isPlain(record: unknown): boolean {
  if (!Array.isArray(record) || record.length < 3) return false;
  if (!isText(record[0]) || !isTime(record[1]) || !(record[2] === null || isTime(record[2]))) return false;
  for (let i = 3; i < record.length; i++) if (!isText(record[i])) return false;
  return true;
}
const isText = (v: unknown): boolean => typeof v === "string" && v.length <= LIMITS.textLength;
const isTime = (v: unknown): boolean => Number.isSafeInteger(v) && (v as number) >= 0 && (v as number) <= LATEST_MS;
