import * as z from "zod";
import { REMOVAL_TARGETS } from "../../../db/rows.ts";
import { CONTAINER_GC_WHY, GC_OPERATIONS, REMOVAL_ENDS } from "../../model/container-gc.ts";
import { EXPLAIN, KINDS } from "../../model/decision.ts";
import { EVICTION_SIGNALS, PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import { podRef } from "../../model/forms.ts";
import { IMAGE_REMOVE_WHY } from "../../model/image-gc.ts";
import { REMOVING_KINDS } from "../../model/kinds.ts";
import { SEVERITIES } from "../../service/fleet.ts";

/** The answers that list decisions, nodes and removals, and what they have in common with all others. */
export const id = z.string().regex(/^[0-9a-f]{32}$/);
export const time = z.iso.datetime();
export const integer = z.number();
export const kind = z.enum(KINDS);

/** The kind of a recorded decision; other versions may know other kinds. */
const recordedKind = z
  .string()
  .describe("one of this version's kinds, or a kind of the other version of Nodewise that recorded the decision");
export const identity = {
  id,
  kind,
  node: z.string(),
  policyVersion: z.string(),
  snapshotId: id.nullable(),
  decidedAt: time,
};

export const decisionHead = z.strictObject({
  ...identity,
  kind: recordedKind,
  times: integer.describe(
    "how often the node made this decision in a row, each time with the same answer; only the time and the snapshot differ",
  ),
  lastDecidedAt: time.describe("the time of the last of these decisions; `decidedAt` is the time of the first"),
  lastSnapshotId: id
    .nullable()
    .describe("the id of the last decision's snapshot, which is kept as long as this record"),
  verdict: z.string(),
  reason: z
    .string()
    .nullable()
    .describe(
      "the kubelet's reason: a refused pod's reason such as OutOfcpu, or the signal of an eviction; null: there is none, or a version that recorded no reasons wrote the decision",
    ),
  explain: z.enum(EXPLAIN),
  pod: podRef.nullable(),
});
export const decisionList = z.strictObject({ decisions: z.array(decisionHead), nextPageToken: z.string().nullable() });

export const again = z
  .strictObject({
    times: integer.describe("how often the decision was made, the first time and this one included"),
    firstDecidedAt: time,
    firstSnapshotId: id.nullable(),
  })
  .describe(
    "present if the decision is the same as the node's newest decision of its kind: it is then counted on that record, whose id is `id`, while `snapshotId` and `decidedAt` are those of this request; absent: the decision has a record of its own",
  );

const headroom = z.strictObject({
  signal: z.enum(EVICTION_SIGNALS),
  threshold: z.string().describe("the threshold as the configuration has it, such as 100Mi or 10%"),
  type: z.enum(["hard", "soft"]),
  distance: z
    .number()
    .describe(
      "the available amount less the threshold, in bytes, inodes or process ids; negative: the amount by which the signal is below the threshold",
    ),
  ratio: z.number().nullable().describe("`distance` as a share of the capacity; null: the capacity is not known"),
  observedAt: time.describe("the time at which the signal was observed"),
  metAt: time
    .nullable()
    .describe(
      "the time at which the threshold is met according to the forecast; null: not within 6 hours after `observedAt`, or not known",
    ),
});
const nodeFields = {
  name: z.string(),
  firstSeenAt: time,
  lastSeenAt: time,
  deletedAt: time
    .nullable()
    .describe(
      "the time at which the cluster deleted the node; null: the node was not deleted, its deletion was not reported, or the node has reported something since",
    ),
  bootId: z.string().nullable(),
  lastSnapshotId: id.nullable(),
  lastSequence: integer.nullable(),
  zone: z.string().nullable().describe("the node's label topology.kubernetes.io/zone"),
  kubeletVersion: z.string().nullable().describe("the kubelet version in the node's newest snapshot, such as v1.36.3"),
  decidedAs: z
    .string()
    .nullable()
    .describe("the kubelet version whose rules made the node's newest decision, such as 1.36"),
  severity: z
    .enum(SEVERITIES)
    .describe(
      "the node's state: the worst of these values that holds, listed from the best to the worst; a node that is silent or deleted has that state whatever else holds",
    ),
  silent: z
    .boolean()
    .describe("true: the node has reported nothing for 15 minutes, and its cluster has not deleted it"),
  pressureFrom: z
    .enum(["eviction-pass", "node-status"])
    .nullable()
    .describe(
      "the source of `conditions`: the node's newest eviction pass, unless that pass is more than 15 minutes older than the node's last report; else the conditions of the v1.Node; null: the pressure is not known",
    ),
  conditions: z
    .array(z.enum(PRESSURE_CONDITIONS))
    .describe("the pressure conditions that are True according to `pressureFrom`"),
  headroom: headroom
    .nullable()
    .describe(
      "the distance to the most urgent eviction threshold at the newest eviction pass: a threshold that is met, else the threshold that the forecast expects to be met first, else the threshold with the lowest `ratio`; null: not known",
    ),
  decisions: integer.describe(
    "the number of decisions about the node since `countedSince`; the other counts up to `kubeletEvicted` are since then too",
  ),
  refused: integer.describe("the number of decisions with the verdict refused"),
  refusals: z
    .array(
      z.strictObject({
        reason: z.string().describe("the kubelet's reason; for a decision without one, its verdict"),
        count: integer,
      }),
    )
    .describe("the refused decisions by reason, the most frequent reason first"),
  evicted: integer.describe("the number of eviction passes that chose a pod"),
  kubeletRefused: integer
    .nullable()
    .describe(
      "the number of pods that the node's kubelet really refused, according to the reported outcomes; null: no outcome of the node was ever reported",
    ),
  kubeletRefusals: z
    .array(z.strictObject({ reason: z.string(), count: integer }))
    .describe("the pods of `kubeletRefused` by reason"),
  kubeletEvicted: integer
    .nullable()
    .describe(
      "the number of pods that the node's kubelet really evicted, according to the reported outcomes; null: no outcome of the node was ever reported",
    ),
  drift: integer
    .nullable()
    .describe(
      "the number of cgroup files whose value differed from the decided one at the daemon's newest pass; null: no daemon has reported cgroup files",
    ),
  lastDecisionAt: time.nullable(),
};
const countedSince = time.describe(
  "the beginning of the counted time: decisions and outcomes of this hour or later are counted",
);
export const nodeAnswer = z.strictObject({
  ...nodeFields,
  labels: z
    .record(z.string(), z.string())
    .nullable()
    .describe("the labels in the node's newest snapshot; null: no labels were reported"),
  thresholds: z
    .array(headroom)
    .describe("the distance to each eviction threshold, the most urgent threshold first, as for `headroom`"),
  countedSince,
  latest: z.record(kind, decisionHead.nullable()),
});
const newest = z.strictObject({
  id: z.string(),
  verdict: z.string(),
  reason: z.string().nullable(),
  decidedAt: time.describe(
    "the time of the decision; for a decision that was made several times in a row, the last time",
  ),
});
export const nodeList = z.strictObject({
  nodes: z.array(
    z.strictObject({
      ...nodeFields,
      latest: z.partialRecord(kind, newest).describe("the newest decision of each kind"),
    }),
  ),
  countedSince,
  nextPageToken: z.string().nullable(),
});
export const nodeDeleted = z.strictObject({ node: z.string(), deletedAt: time });

const imageNames = z
  .array(z.string())
  .describe("the first 32 tags of the image; for an image without tags, its digests");

export const removal = z.strictObject({
  kind: z.enum(REMOVING_KINDS),
  operation: z.enum(GC_OPERATIONS),
  target: z.enum(REMOVAL_TARGETS),
  id: z.string().describe("the runtime's id of the object; for log directories and log links, the name"),
  runtimeHandler: z.string().describe("the runtime handler for which the runtime lists the image; empty: none"),
  names: imageNames,
  bytes: integer
    .nullable()
    .describe("the size in bytes that the runtime reported for the image; null: the object is not an image"),
  pod: podRef.nullable(),
  container: z.string().nullable(),
  why: z.enum([...IMAGE_REMOVE_WHY, ...CONTAINER_GC_WHY]),
  end: z.enum(REMOVAL_ENDS),
  message: z.string().nullable().describe("the runtime's message about the removal"),
  at: time.describe("the time of the pass: the time at which its snapshot was observed"),
  decisionId: z
    .string()
    .describe("the id of the decision that contains the removal; the history may have deleted that decision since"),
  againAt: time.nullable().describe("the time at which the image was seen on the node again; null: it was not"),
});
export const removalList = z.strictObject({ removals: z.array(removal), nextPageToken: z.string().nullable() });

export const removalSummary = z.strictObject({
  totals: z
    .strictObject({
      removed: integer,
      failed: integer,
      stopped: integer,
      bytes: integer.describe(
        "the bytes of the removed images; a layer that several images share counts with each of them",
      ),
      pulledAgain: integer.describe("the number of removals after which the image was seen on the node again"),
      pulledAgainBytes: integer,
      medianAwayMs: integer
        .nullable()
        .describe(
          "the median time between the removal of an image and its return, in milliseconds; null: no image came back",
        ),
    })
    .describe("the totals over all images"),
  images: z
    .array(
      z.strictObject({
        id: z.string(),
        runtimeHandler: z.string(),
        names: imageNames,
        bytes: integer.describe("the size of the image at its last removal, in bytes"),
        times: integer.describe("how often the image was removed"),
        again: integer.describe("how often the image was seen on the node again after a removal"),
        againBytes: integer.describe("the bytes of the image, counted once for each time that it came back"),
        lastRemovedAt: time,
        lastAgainAt: time.nullable(),
      }),
    )
    .describe("the 50 images with the most bytes pulled again (`againBytes`), the highest number first"),
  others: z
    .array(z.strictObject({ target: z.enum(REMOVAL_TARGETS), end: z.enum(REMOVAL_ENDS), count: integer }))
    .describe("the number of removals of other objects (containers, sandboxes, logs), by how they ended"),
});
