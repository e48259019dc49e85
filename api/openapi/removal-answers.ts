import * as z from "zod";
import { REMOVAL_KINDS, REMOVAL_TARGETS } from "../../db/removal.ts";
import { CONTAINER_GC_WHY } from "../model/container-gc.ts";
import { GC_OPERATIONS, REMOVAL_ENDS } from "../model/garbage-collection.ts";
import { IMAGE_REMOVE_WHY } from "../model/image-gc.ts";
import { podRef } from "./manager-answers.ts";

/** What was collected of a node, as the API answers it. */
const integer = z.number();
const time = z.iso.datetime();
const names = z.array(z.string()).describe("of an image: its tags; without any, its digests; the first 32");

export const removal = z.strictObject({
  kind: z.enum(REMOVAL_KINDS),
  operation: z.enum(GC_OPERATIONS),
  target: z.enum(REMOVAL_TARGETS),
  id: z.string().describe("the runtime's id; of logs and links the name"),
  runtimeHandler: z.string().describe("of an image that is kept for one; otherwise empty"),
  names,
  bytes: integer.nullable().describe("of an image: what the runtime told"),
  pod: podRef.nullable(),
  container: z.string().nullable(),
  why: z.enum([...IMAGE_REMOVE_WHY, ...CONTAINER_GC_WHY]),
  end: z.enum(REMOVAL_ENDS),
  message: z.string().nullable().describe("the runtime's words"),
  at: time.describe("of the pass: when its snapshot was observed"),
  decisionId: z.string().describe("the decision that told of it, which may be gone by now"),
  againAt: time.nullable().describe("when the image was seen on the node again; null: it was not"),
});
export const removalList = z.strictObject({ removals: z.array(removal), nextPageToken: z.string().nullable() });

export const removalSummary = z.strictObject({
  totals: z
    .strictObject({
      removed: integer,
      failed: integer,
      stopped: integer,
      bytes: integer.describe("of what was removed; layers of several images count with each"),
      pulledAgain: integer.describe("removals after which the image came back"),
      pulledAgainBytes: integer,
      medianAwayMs: integer.nullable().describe("how long such an image was away"),
    })
    .describe("of images"),
  images: z
    .array(
      z.strictObject({
        id: z.string(),
        runtimeHandler: z.string(),
        names,
        bytes: integer.describe("its size at its last removal"),
        times: integer.describe("how often it was removed"),
        again: integer.describe("how often it came back"),
        againBytes: integer.describe("of all times that it came back"),
        lastRemovedAt: time,
        lastAgainAt: time.nullable(),
      }),
    )
    .describe("the 50 that cost most, the dearest first"),
  others: z
    .array(z.strictObject({ target: z.enum(REMOVAL_TARGETS), end: z.enum(REMOVAL_ENDS), count: integer }))
    .describe("how often anything else was removed, or not"),
});
