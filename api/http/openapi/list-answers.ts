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
const recordedKind = z.string().describe("one of the kinds, unless another version wrote it");
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
  times: integer.describe("how often it was made, each time the same but for the time and the snapshot"),
  lastDecidedAt: time.describe("of these the last; `decidedAt` is the first"),
  lastSnapshotId: id.nullable().describe("the snapshot of that last time; it is kept as long as this record"),
  verdict: z.string(),
  reason: z
    .string()
    .nullable()
    .describe(
      "the kubelet's reason: a refused pod's reason such as OutOfcpu, the signal of an eviction; null: none, or recorded before reasons were",
    ),
  explain: z.enum(EXPLAIN),
  pod: podRef.nullable(),
});
export const decisionList = z.strictObject({ decisions: z.array(decisionHead), nextPageToken: z.string().nullable() });

export const again = z
  .strictObject({
    times: integer.describe("the first time and this one included"),
    firstDecidedAt: time,
    firstSnapshotId: id.nullable(),
  })
  .describe(
    "it is the same as the node's newest decision of its kind, and was counted on that: `id` names that record, `snapshotId` and `decidedAt` are of this request; absent: it has a record of its own",
  );

const headroom = z.strictObject({
  signal: z.enum(EVICTION_SIGNALS),
  threshold: z.string().describe("as configured, such as 100Mi or 10%"),
  type: z.enum(["hard", "soft"]),
  distance: z
    .number()
    .describe("available less the threshold, in bytes, inodes or process ids; negative: so much is missing"),
  ratio: z.number().nullable().describe("the same as a share of the capacity; null: that is not known"),
  observedAt: time.describe("when the signal was observed"),
  metAt: time
    .nullable()
    .describe("when it is met by the forecast; null: not within 6 hours of `observedAt`, or not known"),
});
const nodeFields = {
  name: z.string(),
  firstSeenAt: time,
  lastSeenAt: time,
  deletedAt: time
    .nullable()
    .describe(
      "when its cluster deleted it; null: it was not deleted, its deletion was not reported, or the node has reported something since",
    ),
  bootId: z.string().nullable(),
  lastSnapshotId: id.nullable(),
  lastSequence: integer.nullable(),
  zone: z.string().nullable().describe("its label topology.kubernetes.io/zone"),
  kubeletVersion: z.string().nullable().describe("as reported in its newest snapshot, such as v1.36.3"),
  decidedAs: z.string().nullable().describe("the kubelet version that its newest decision was made as, such as 1.36"),
  severity: z
    .enum(SEVERITIES)
    .describe(
      "its state: the last of these that holds, from the best to the worst; for a node that is silent or gone nothing else counts",
    ),
  silent: z.boolean().describe("it has reported nothing for 15 minutes, and its cluster has not deleted it"),
  pressureFrom: z
    .enum(["eviction-pass", "node-status"])
    .nullable()
    .describe(
      "the source of its pressure: its newest eviction pass, unless that is more than 15 minutes older than the node's last report; else the conditions of its v1.Node; null: it is not known",
    ),
  conditions: z.array(z.enum(PRESSURE_CONDITIONS)).describe("those that are True by that"),
  headroom: headroom
    .nullable()
    .describe(
      "to the eviction threshold that is met first, as of that pass: one that is met, else the first that will be by its forecast, else the nearest by `ratio`; null: not known",
    ),
  decisions: integer.describe("since `countedSince`, as are the next six"),
  refused: integer.describe("decisions that refused"),
  refusals: z
    .array(z.strictObject({ reason: z.string().describe("without one, the verdict"), count: integer }))
    .describe("the refused ones by their reason, the most frequent first"),
  evicted: integer.describe("eviction passes that chose a pod"),
  kubeletRefused: integer
    .nullable()
    .describe("pods that its kubelet really refused, by the outcomes that were reported; null: none ever were"),
  kubeletRefusals: z.array(z.strictObject({ reason: z.string(), count: integer })).describe("the same pods by reason"),
  kubeletEvicted: integer
    .nullable()
    .describe("pods that its kubelet really evicted; null: no outcome was ever reported"),
  drift: integer
    .nullable()
    .describe("files of cgroups that were not as decided at the newest pass; null: no daemon has reported its files"),
  lastDecisionAt: time.nullable(),
};
const countedSince = time.describe("what is of that hour or later is counted");
export const nodeAnswer = z.strictObject({
  ...nodeFields,
  labels: z.record(z.string(), z.string()).nullable().describe("of its newest snapshot; null: none were reported"),
  thresholds: z.array(headroom).describe("the distance to each eviction threshold, in the order of `headroom`"),
  countedSince,
  latest: z.record(kind, decisionHead.nullable()),
});
const newest = z.strictObject({
  id: z.string(),
  verdict: z.string(),
  reason: z.string().nullable(),
  decidedAt: time.describe("of one that was made again: the last time"),
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

const imageNames = z.array(z.string()).describe("of an image: its tags; without any, its digests; the first 32");

export const removal = z.strictObject({
  kind: z.enum(REMOVING_KINDS),
  operation: z.enum(GC_OPERATIONS),
  target: z.enum(REMOVAL_TARGETS),
  id: z.string().describe("the runtime's id; of logs and links the name"),
  runtimeHandler: z.string().describe("of an image that is kept for one; otherwise empty"),
  names: imageNames,
  bytes: integer.nullable().describe("of an image: what the runtime reported"),
  pod: podRef.nullable(),
  container: z.string().nullable(),
  why: z.enum([...IMAGE_REMOVE_WHY, ...CONTAINER_GC_WHY]),
  end: z.enum(REMOVAL_ENDS),
  message: z.string().nullable().describe("the runtime's message"),
  at: time.describe("of the pass: when its snapshot was observed"),
  decisionId: z.string().describe("the decision that contains it, which may be gone by now"),
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
        names: imageNames,
        bytes: integer.describe("its size at its last removal"),
        times: integer.describe("how often it was removed"),
        again: integer.describe("how often it came back"),
        againBytes: integer.describe("of all times that it came back"),
        lastRemovedAt: time,
        lastAgainAt: time.nullable(),
      }),
    )
    .describe("the 50 with the highest cost, highest first"),
  others: z
    .array(z.strictObject({ target: z.enum(REMOVAL_TARGETS), end: z.enum(REMOVAL_ENDS), count: integer }))
    .describe("how often anything else was removed, or not"),
});
