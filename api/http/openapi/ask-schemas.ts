import { POD_NAME } from "../../model/ask.ts";
import { GC_OPERATIONS } from "../../model/container-gc.ts";
import type { Kind } from "../../model/decision.ts";
import { resourceNameMeta } from "../../model/fields.ts";
import { LIMITS } from "../../model/limits.ts";
import { LARGEST_FAILURE_AMOUNT } from "../../model/preemption.ts";
import { LONGEST_DRY_RUN_SECONDS, PROBES_DEFAULTS } from "../../model/probes-ask.ts";
import { MAX_OUTCOMES, OUTCOME_WORDS } from "../../model/probes-decision.ts";
import { type JsonSchema, NULL, ref, strictObject } from "./json-schema.ts";
import { PROBE_GUARD_ASK } from "./probe-guard-ask.ts";
import { PROBED_POD } from "./probed-pod.ts";
import { withNulls } from "./with-nulls.ts";

const TIMES = "0{0,5}[1-9]|0{0,4}[1-9][0-9]|0{0,3}[1-9][0-9]{2}|0{0,2}[1-9][0-9]{3}|0?10000";
const ITEM = `\\s*(?:${OUTCOME_WORDS.join("|")})(?:@[0-9]{1,7}(?:[.][0-9]{1,3})?m?s)?(?:[*](?:${TIMES}))?\\s*`;
const SCRIPT: JsonSchema = {
  description: `outcomes of successive attempts, the last repeats: ok, fail, error (could not be asked), warn, timeout, hang (the body breaks off), each with @TIME and *N: \`ok,fail@200ms*3\`, or a list of such items; ${MAX_OUTCOMES} attempts at most`,
  anyOf: [
    { type: "string", maxLength: LIMITS.textLength, pattern: `^${ITEM}(?:,${ITEM})*$` },
    {
      type: "array",
      maxItems: MAX_OUTCOMES,
      items: { type: "string", maxLength: LIMITS.textLength, pattern: `^${ITEM}$` },
    },
  ],
};
const seconds = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: "number",
  minimum: 0,
  maximum: LONGEST_DRY_RUN_SECONDS,
  description,
  ...more,
});

/** The ask of `probes` beside the pod. */
const PROBES_ASK: Readonly<Record<string, JsonSchema>> = {
  container: {
    description: "only this one of the pod; absent: all",
    type: "string",
    maxLength: LIMITS.textLength,
  },
  outcomes: {
    description: "what attempts are answered, of all types or by type; absent: always ok",
    anyOf: [SCRIPT, strictObject({ startup: SCRIPT, liveness: SCRIPT, readiness: SCRIPT })],
  },
  seconds: seconds("how long the dry run is", { exclusiveMinimum: 0, default: PROBES_DEFAULTS.seconds }),
  strict: {
    type: "boolean",
    default: PROBES_DEFAULTS.strict,
    description: "the documented behaviour in the place of the kubelet's quirks",
  },
  stopSeconds: seconds("how long a container takes to end; its grace is the most", {
    default: PROBES_DEFAULTS.stopSeconds,
  }),
  backOff: {
    type: "boolean",
    default: PROBES_DEFAULTS.backOff,
    description: "CrashLoopBackOff between restarts",
  },
  kubeletRestartSeconds: seconds("when the kubelet itself restarts; absent: it does not"),
  jitter: {
    type: "number",
    minimum: 0,
    maximum: 1,
    default: PROBES_DEFAULTS.jitter,
    description: "the share of its period that each worker sleeps after that restart",
  },
};

const TEXT: JsonSchema = { type: "string", maxLength: LIMITS.textLength };
const COUNT: JsonSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const AMOUNT: JsonSchema = { ...COUNT, maximum: LARGEST_FAILURE_AMOUNT };

const podOf = (schema: string): JsonSchema => ({
  description: "the pod that asks to come in, or NAMESPACE/NAME of one of the snapshot; absent: what is there",
  anyOf: [ref(schema), { type: "string", pattern: POD_NAME.source }],
});
const pod = podOf("Pod");
const SHORTAGE = {
  resourceName: { type: "string", ...resourceNameMeta },
  requested: AMOUNT,
  used: AMOUNT,
  capacity: AMOUNT,
};
const failureReasons: JsonSchema = {
  type: "array",
  maxItems: LIMITS.resourcesPerList,
  description: "what the predicates failed with; absent: they are asked",
  items: {
    anyOf: [
      strictObject({ ...SHORTAGE, predicateName: NULL }, Object.keys(SHORTAGE)),
      strictObject({ ...Object.fromEntries(Object.keys(SHORTAGE).map((name) => [name, NULL])), predicateName: TEXT }, [
        "predicateName",
      ]),
    ],
  },
};
const GC: Readonly<Record<string, JsonSchema>> = {
  operation: {
    type: "string",
    enum: GC_OPERATIONS,
    default: GC_OPERATIONS[0],
    description: "garbage-collect as the kubelet's timer does it, or delete-unused as its eviction manager does it",
  },
  done: {
    ...ref("RemovalsDone"),
    description: "how the removals of this very pass ended so far; absent: it is a plan",
  },
  error: {
    ...TEXT,
    description: "what the runtime answered instead of its lists; the pass failed, and the snapshot needs none of them",
  },
};
const facts = (name: string): JsonSchema => ({
  ...ref(name),
  description: "the next of the node's last answer; absent: what the history remembers counts",
});

interface KindsAsk {
  /** Of the schema. */
  readonly name: string;
  readonly kinds: readonly Kind[];
  readonly members: Readonly<Record<string, JsonSchema>>;
}
const ASKS: readonly KindsAsk[] = [
  { name: "PodAsk", kinds: ["cpus", "memory", "topology", "devices", "admission"], members: { pod } },
  { name: "PreemptionAsk", kinds: ["preemption"], members: { pod, failureReasons } },
  {
    name: "EvictionAsk",
    kinds: ["eviction"],
    members: {
      pod: {
        ...TEXT,
        pattern: "^[^/]+/[^/]+$",
        description: "NAMESPACE/NAME of a pod whose counterfactuals are wanted beside those of the next victim",
      },
      statsAfterReclaim: { ...ref("Stats"), description: "the Summary after the node-level reclaim ran" },
      images: {
        ...ref("ImageGcFacts"),
        description:
          "the `next` of the node's last image-gc, which tells what is old enough to be reclaimed; absent: what the history remembers of it",
      },
      facts: facts("EvictionFacts"),
    },
  },
  {
    name: "ImageGcAsk",
    kinds: ["image-gc"],
    members: {
      ...GC,
      fileSystem: {
        ...strictObject({ capacityBytes: COUNT, availableBytes: COUNT }, ["capacityBytes", "availableBytes"]),
        description: "the image file system after the images that were too old are gone",
      },
      afterContainerGc: {
        type: "boolean",
        default: false,
        description: "take the containers for gone that a container-gc of the same operation removes first",
      },
      facts: facts("ImageGcFacts"),
    },
  },
  { name: "ContainerGcAsk", kinds: ["container-gc"], members: GC },
  { name: "ProbesAsk", kinds: ["probes"], members: { pod: podOf("ProbedPod"), ...PROBES_ASK } },
  { name: "ProbeGuardAsk", kinds: ["probe-guard"], members: PROBE_GUARD_ASK },
];

/** What can be asked of each group of kinds; of the first nothing can. */
export const ASKED: readonly { readonly kinds: readonly Kind[]; readonly asks: readonly JsonSchema[] }[] = [
  { kinds: ["allocatable", "cgroups"], asks: [] },
  ...ASKS.map(({ kinds, name }) => ({ kinds, asks: [ref(name)] })),
];
/** The schemas that they refer to, by name. */
export const ASK_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ProbedPod: PROBED_POD,
  ...Object.fromEntries(
    ASKS.map(({ name, kinds, members }) => [
      name,
      { ...withNulls(strictObject(members)), description: `what is asked of ${kinds.join(", ")} beside the snapshot` },
    ]),
  ),
};
