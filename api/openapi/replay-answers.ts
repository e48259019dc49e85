import * as z from "zod";
import { KINDS } from "../model/decision.ts";
import { PROBLEMS } from "../routes/problem.ts";
import { podRef } from "./manager-answers.ts";

/** A page of the history decided again, as the API answers it. */
const integer = z.number();
const time = z.iso.datetime();
const kind = z.enum(KINDS);

export const replayCounts = z
  .strictObject({
    replayed: integer.describe("`same`, `differs` and `refused` together: what could be decided again"),
    same: integer,
    differs: integer,
    refused: integer.describe("cannot be decided with what is asked about"),
    gone: integer.describe("not replayed: their snapshot is no longer stored"),
    unreadable: integer.describe("not replayed: they, or what they were decided on, are damaged"),
  })
  .describe("decisions");
const side = z.enum(["recorded", "replayed"]);

export const changedDecision = z.strictObject({
  id: z.string().describe("POST /v1/decisions/ID/replay tells all of it"),
  kind,
  node: z.string(),
  decidedAt: time,
  pod: podRef.nullable(),
  recordedVerdict: z.string(),
  verdict: z.string().nullable().describe("null: it is refused"),
  differences: z
    .array(
      z.strictObject({
        path: z.string(),
        recorded: z.unknown().optional(),
        replayed: z.unknown().optional(),
        omitted: z.array(side).optional().describe("what is too long to be listed"),
      }),
    )
    .describe("the first few"),
  differenceCount: integer.describe("1000: or more"),
  problem: z
    .strictObject({ code: z.enum(Object.keys(PROBLEMS) as [keyof typeof PROBLEMS]), detail: z.string() })
    .nullable()
    .describe("why it is refused"),
});

export const unreadableDecision = z.strictObject({
  id: z.string(),
  kind: z.string().describe("may be one that this version does not know"),
  node: z.string(),
  decidedAt: time,
  unreadable: z.string().describe("what cannot be read, and what to do about it"),
});

export const historyReplay = z.strictObject({
  counts: replayCounts,
  byKind: z.record(z.string(), replayCounts),
  byNode: z.record(z.string(), replayCounts),
  verdicts: z
    .array(
      z.strictObject({
        kind,
        recorded: z.string(),
        replayed: z.string().nullable().describe("as `recorded`: it differs below the verdict; null: it is refused"),
        count: integer,
      }),
    )
    .describe("of those that differ or are refused, the most frequent first"),
  changed: z.array(changedDecision).describe("all that differ or are refused, oldest first"),
  unreadable: z.array(unreadableDecision).describe("all that were passed because they are damaged, oldest first"),
  until: time.describe("the end, which stays the same from page to page"),
  reachedAt: time.nullable().describe("when the last decision that was looked at was decided"),
  progress: z.number().describe("0 to 1, by the time between the oldest decision and the newest"),
  nextPageToken: z.string().nullable().describe("null: this was the last page"),
});
