import * as z from "zod";
import { CONTAINER_GC_TARGETS, CONTAINER_GC_WHY, CONTAINER_KEEP_WHY } from "../model/container-gc.ts";
import { GC_OPERATIONS, REMOVAL_ENDS } from "../model/garbage-collection.ts";
import { IMAGE_KEEP_WHY, IMAGE_REMOVE_WHY } from "../model/image-gc.ts";
import { CONTAINER_STATES, SANDBOX_STATES } from "../model/runtime.ts";
import { podRef } from "./manager-answers.ts";

/** What may be thrown away, as the API answers it. Times in epoch ms, sizes in bytes. */
const integer = z.number();
const bytes = z.number().describe("bytes");
const time = z.number().describe("epoch ms");
const ms = z.number().describe("milliseconds");
const operation = z.enum(GC_OPERATIONS);
const end = z.enum(["planned", ...REMOVAL_ENDS]).describe("planned: ask.done does not speak of it");
const message = z.string().describe("the runtime's words where it refused").optional();
const place = z.number().describe("in the order, from 1");
const tie = z.boolean().describe("equal to a neighbour: the id decides here, chance decides in the kubelet");
const oldEnoughAtMs = time.nullable().describe("when its age allows it; null: age is not what keeps it");
const event = z
  .strictObject({ type: z.enum(["Normal", "Warning"]), reason: z.string(), message: z.string() })
  .describe("as the kubelet records it for its node");
const error = z.string().nullable().describe("the kubelet's words");

const imageNames = { id: z.string(), runtimeHandler: z.string(), names: z.array(z.string()), sizeBytes: bytes };
const image = {
  ...imageNames,
  firstDetectedAtMs: time,
  lastUsedAtMs: time.nullable().describe("null: never seen in use"),
};
const imageRemoval = z.strictObject({
  place,
  ...image,
  why: z.enum(IMAGE_REMOVE_WHY),
  tie,
  exclusiveBytes: bytes
    .nullable()
    .describe("what really comes back with it and all before it gone; null: layers are not known"),
  end,
  message,
});
const imageKept = z.strictObject({
  ...image,
  why: z.enum(IMAGE_KEEP_WHY),
  place: place.nullable().describe("null: it is not in the order"),
  usedBy: z.array(z.string()).describe("the first few of NAMESPACE/POD CONTAINER (state)"),
  oldEnoughAtMs,
});

export const imageGcDecision = z.strictObject({
  operation,
  policy: z.strictObject({
    highThresholdPercent: integer,
    lowThresholdPercent: integer,
    minAgeMs: ms,
    maxAgeMs: ms.describe("0: no image is too old"),
    timer: z.boolean().describe("false: the kubelet runs no timer for it"),
  }),
  fileSystem: z
    .strictObject({
      capacityBytes: bytes,
      availableBytes: bytes,
      usagePercent: integer,
      wantedBytes: bytes.nullable().describe("down to the low threshold; null: below the high one"),
    })
    .nullable()
    .describe("null: it was not looked at"),
  remove: z.array(imageRemoval).describe("in the kubelet's order"),
  keep: z.array(imageKept),
  freedBytes: bytes.describe("the kubelet's own sum: shared layers count with each image"),
  freedOnceBytes: bytes.nullable().describe("each layer once and none that stays; null: layers are not known"),
  error,
  events: z.array(event),
  pulledAgain: z
    .array(z.strictObject({ ...imageNames, removedAtMs: time, againAtMs: time, times: integer, again: integer }))
    .describe("collected before, and on the node again since the last pass"),
});

const target = {
  target: z.enum(CONTAINER_GC_TARGETS),
  id: z.string().describe("CRI id; of logs and links the name"),
  pod: podRef.nullable(),
  name: z.string().nullable().describe("of a container"),
  attempt: integer.nullable(),
  state: z.enum([...CONTAINER_STATES, ...SANDBOX_STATES]).nullable(),
  createdAtMs: time.nullable(),
};
const containerRemoval = z.strictObject({
  place,
  ...target,
  why: z.enum(CONTAINER_GC_WHY),
  stopFirst: z.boolean(),
  tie,
  end,
  message,
});
const containerKept = z.strictObject({ ...target, why: z.enum(CONTAINER_KEEP_WHY), oldEnoughAtMs });

export const containerGcDecision = z.strictObject({
  operation,
  policy: z.strictObject({ minAgeMs: ms, maxPerPodContainer: integer, maxContainers: integer }),
  allSourcesReady: z.boolean().describe("false: nothing of a pod that is not known is taken"),
  remove: z.array(containerRemoval).describe("in the order of a pass"),
  keep: z.array(containerKept),
  error,
  events: z.array(event),
});
