import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { err, ok, type Result } from "../base/result.ts";
import { PREPARE_FAILED, prepareWords } from "./claims.ts";
import { decodeForm } from "./decode.ts";
import { PRESSURE_CONDITIONS } from "./eviction.ts";
import { count, optional, text, timestamp } from "./fields.ts";
import type { Form } from "./forms.ts";
import { pod, podUid } from "./pod.ts";
import { withDefaultRequests } from "./pod-defaults.ts";
import { resourceClaim } from "./resource-claim.ts";

/** The kinds of kubelet acts that can be compared with decisions. */
export const OUTCOME_KINDS = [
  "admission",
  "preemption",
  "eviction",
  "conditions",
  "resize",
  "claims",
  "probes",
  "image-gc",
] as const;
export type OutcomeKind = (typeof OUTCOME_KINDS)[number];
export const isOutcomeKind = (s: string): s is OutcomeKind => (OUTCOME_KINDS as readonly string[]).includes(s);

/** How kinds of outcomes differ in comparison, storage and display. */
interface OutcomeTraits {
  /**
   * How old the last snapshot before it may be, in milliseconds. A pass of the eviction manager looks at usage, which changes by the
   * second; who is on the node changes with every pod. Images change when one is pulled.
   */
  readonly snapshotAgeMs: number;
  /** True: the kubelet decided it by the other pods of the node. */
  readonly readsPods: boolean;
  /** True: the kubelet admits a pod, which the pressure conditions of the node may forbid. */
  readonly admits: boolean;
  /** False: the decision does not depend on the kubelet's configuration. */
  readonly readsConfiguration: boolean;
  /** The kind whose facts of the node's earlier passes the decision used; null: it used none. */
  readonly facts: "eviction" | "image-gc" | null;
  /** True: it is compared when it is recorded first, and its facts, which may be thousands of records, are not kept beside it. */
  readonly comparedOnce: boolean;
  /** Its effect on the node that later decisions see: a pod was admitted or refused, a pod was ended, a pressure condition changed. */
  readonly changes: "admitted-pods" | "ended-pods" | "conditions" | "nothing";
  /** True: the explanation of a pod mentions it. */
  readonly explainsPods: boolean;
  /** The number of the fleet that it is counted in. */
  readonly countedAs: "refused" | "evicted" | null;
}
const MINUTE_MS = 60_000;
/** A pod is admitted, or not, by what the node has and who is there. */
const ADMITTING = {
  snapshotAgeMs: MINUTE_MS,
  readsPods: true,
  admits: true,
  readsConfiguration: true,
  facts: null,
  comparedOnce: false,
  explainsPods: true,
} as const;
/** A pass of the eviction manager. */
const EVICTION_PASS = {
  ...ADMITTING,
  snapshotAgeMs: 20_000,
  admits: false,
  facts: "eviction",
} as const;
export const OUTCOME_TRAITS: Readonly<Record<OutcomeKind, OutcomeTraits>> = {
  admission: { ...ADMITTING, changes: "admitted-pods", countedAs: "refused" },
  preemption: { ...ADMITTING, changes: "ended-pods", countedAs: null },
  eviction: { ...EVICTION_PASS, changes: "ended-pods", countedAs: "evicted" },
  conditions: { ...EVICTION_PASS, readsPods: false, changes: "conditions", explainsPods: false, countedAs: null },
  resize: { ...ADMITTING, changes: "nothing", countedAs: null },
  claims: { ...ADMITTING, readsPods: false, admits: false, changes: "nothing", countedAs: null },
  probes: {
    ...{ snapshotAgeMs: Number.POSITIVE_INFINITY, readsPods: false, admits: false, readsConfiguration: false },
    ...{ facts: null, comparedOnce: false, changes: "nothing", explainsPods: true, countedAs: null },
  },
  "image-gc": {
    ...{ snapshotAgeMs: 5 * MINUTE_MS, readsPods: false, admits: false, readsConfiguration: true },
    ...{ facts: "image-gc", comparedOnce: true, changes: "nothing", explainsPods: false, countedAs: null },
  },
};
/** Whether a pod is gone from the node by it; a refused pod never was one of the node's. */
export const endsPod = (one: Outcome): boolean =>
  one.kind === "admission" ? !one.admitted : OUTCOME_TRAITS[one.kind].changes === "ended-pods";

/** Where an outcome was seen. */
const SEEN_IN = ["pod-status", "event", "node-status", "image-list", "log"] as const;

export const AGREEMENT_VERDICTS = ["agrees", "differs", "not-comparable"] as const;
export type AgreementVerdict = (typeof AGREEMENT_VERDICTS)[number];
export const isAgreementVerdict = (s: string): s is AgreementVerdict =>
  (AGREEMENT_VERDICTS as readonly string[]).includes(s);

/** Why an outcome cannot be compared, each with how to make it comparable the next time. */
export const NOT_COMPARABLE = {
  no_snapshot: "there is no snapshot of the node from before the outcome: post one before it",
  snapshot_too_old:
    "the last snapshot before the outcome is too old: post snapshots more often, and one when pods change",
  snapshot_not_readable: "the snapshot cannot be read any more",
  already_in_snapshot: "the last snapshot shows the outcome already: its time and that of the outcome do not fit",
  version_not_known: "the node reports no kubelet version, or one that is not known here",
  configuration_not_known: "the snapshot has no kubeletConfiguration: add the kubelet's /configz",
  input_not_known: "an input that the kubelet had is not in the snapshot",
  pod_not_known: "neither the outcome nor the snapshot has the pod: post the v1.Pod as the outcome's `object`",
  claims_not_known:
    "what the kubelet read of the pod's ResourceClaims is not known, or changed about then: post them as the outcome's `claims`",
  state_files: "the resource managers decide too, and their state files or the machine are not in the snapshot",
  observation_times:
    "what the kubelet remembered of its earlier eviction passes is not known: ask for an eviction decision on each snapshot",
  image_ages: "since when the kubelet knew the images is not known: ask for an image-gc decision on each snapshot",
  signal_moved:
    "the snapshot is from before the signal or the usage crossed its limit, so it does not have what the kubelet saw",
  pods_left:
    "a pod of the node ended or was removed after the last snapshot, so the kubelet did not have the pods of the snapshot",
  order_not_known: "other pods came or went in the same second, and the answer depends on which was first",
  pressure_not_told:
    "the kubelet reports pressure with its node's status, seconds after it detects it, and the answer depends on that",
  order_is_chance: "the kubelet's own order is chance here: those that it could have chosen are equal",
  preemptor_not_known:
    "it is not known for which pod others were preempted: post the admission of the critical pod too",
  probe_results: "not enough failures of the probe were seen: kubelets drop events when there are many",
  cause_not_known: "nothing in the snapshot makes a kubelet do this: somebody else may have done it",
  not_decided_here: "no decision covers this",
} as const;
export type NotComparable = keyof typeof NOT_COMPARABLE;
const NOT_COMPARABLE_CODES = Object.keys(NOT_COMPARABLE) as [NotComparable, ...NotComparable[]];

export const MAX_OUTCOMES_POSTED = 500;
/** The maximum length of a message; an eviction's lists each container above its request. */
const LONGEST_MESSAGE = 16_384;
const MAX_IMAGES = 4096;

const message = z.string().max(LONGEST_MESSAGE);
const common = {
  at: timestamp.describe("the time of the outcome by the kubelet's clock"),
  after: optional(
    timestamp.describe("a time at which the outcome had not happened yet; absent: `at` is exact to the second"),
  ),
  podLeftAt: optional(
    timestamp.describe(
      "the time at which a pod of the node last ended or was removed, according to the watch; absent: not known, or no pod did",
    ),
  ),
  seenIn: z.array(z.enum(SEEN_IN)).min(1).max(SEEN_IN.length),
};
const name = z.string().min(1).max(LIMITS.textLength);
const ofPod = {
  ...common,
  pod: z.strictObject({ namespace: name, name, uid: name }),
  object: optional(pod.describe("the v1.Pod; only the fields that decisions read are stored")),
};
const words = message.describe("the kubelet's message as its event has it, without `Pod was rejected: `");
const imageName = z.strictObject({
  id: optional(text),
  names: z.array(text).max(LIMITS.imageNames),
  sizeBytes: optional(count),
});

/** One thing that a kubelet did, as a watch saw it. */
const outcome = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("admission"),
    ...ofPod,
    admitted: z.boolean(),
    reason: text.describe("the reason of the refusal; empty: the pod was admitted"),
    message: words,
  }),
  z.strictObject({ kind: z.literal("preemption"), ...ofPod, message: words }),
  z.strictObject({ kind: z.literal("eviction"), ...ofPod, message: words }),
  z.strictObject({
    kind: z.literal("conditions"),
    ...common,
    condition: z.enum(PRESSURE_CONDITIONS),
    status: z.enum(["True", "False"]).describe("the new status of the condition"),
    message: words,
  }),
  z.strictObject({
    kind: z.literal("resize"),
    ...ofPod,
    reason: z.enum(["Deferred", "Infeasible"]),
    generation: optional(count.describe("metadata.generation of the pod's spec that the resize belongs to")),
    message: words,
  }),
  z.strictObject({
    kind: z.literal("claims"),
    ...ofPod,
    prepared: z.boolean().describe("true: the pod's claims were prepared, since its sandbox exists"),
    message: words.describe("the message of the event FailedPrepareDynamicResources; empty: the claims were prepared"),
    claims: optional(
      z
        .array(resourceClaim)
        .max(LIMITS.labels)
        .describe(
          "the pod's v1.ResourceClaims as the kubelet read them, without those that did not exist; only the fields that decisions read are stored",
        ),
    ),
  }),
  z.strictObject({
    kind: z.literal("probes"),
    ...ofPod,
    container: name,
    probe: z.enum(["liveness", "startup"]),
    failures: optional(
      count.describe("the number of failed attempts of the probe since the container's start; absent: not known"),
    ),
    startedAt: optional(timestamp.describe("the start time of the container that the kubelet ended")),
    message: words,
  }),
  z.strictObject({
    kind: z.literal("image-gc"),
    ...common,
    images: z
      .array(imageName)
      .min(1)
      .max(MAX_IMAGES)
      .describe("the images that the runtime listed before and no longer lists"),
  }),
]);
export type Outcome = Readonly<z.output<typeof outcome>>;
export type OutcomeOf<K extends OutcomeKind> = Extract<Outcome, { readonly kind: K }>;
export type PodOutcome = Extract<Outcome, { readonly pod: unknown }>;

export const outcomesPosted = z.strictObject({ outcomes: z.array(outcome).max(MAX_OUTCOMES_POSTED) });

/** Checks posted outcomes and parses them once. Errors: every issue with its path. */
export function decodeOutcomes(input: unknown): Result<readonly Outcome[], readonly InputIssue[]> {
  const parsed = decodeForm(outcomesPosted, input, "");
  if (!parsed.ok) return parsed;
  const issues = parsed.value.outcomes.flatMap((one, i) => issuesIn(one, `outcomes[${i}]`));
  return issues.length > 0 ? err(issues.slice(0, LIMITS.issues)) : ok(parsed.value.outcomes.map(whole));
}

function issuesIn(one: Outcome, at: string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const issue = (field: string, message: string): number =>
    issues.push({ path: joinPath(at, field.split(".")), message });
  if (one.after !== undefined && Date.parse(one.after) > Date.parse(one.at)) issue("after", "is later than `at`");
  if (one.kind === "admission" && one.admitted !== (one.reason === ""))
    issue("reason", "must be empty for a pod that was admitted, and the kubelet's for one that was refused");
  if (one.kind === "claims" && one.prepared !== (one.message === ""))
    issue("message", "must be empty where the claims were prepared, and the kubelet's where they were not");
  if ("object" in one && one.object !== undefined && podUid(one.object) !== one.pod.uid)
    issue("object.metadata.uid", `must be \`${one.pod.uid}\` as in pod`);
  return issues;
}
const whole = (one: Outcome): Outcome =>
  "object" in one && one.object !== undefined ? { ...one, object: withDefaultRequests(one.object) } : one;

/**
 * The identity of an outcome across sightings: a pod is refused for a reason, evicted or preempted once in its life.
 * Claims are prepared once, and fail once with each message. Conditions, probe kills and images are also identified by
 * time.
 */
export function outcomeKey(one: Outcome): readonly unknown[] {
  switch (one.kind) {
    case "admission":
      return [one.kind, one.pod.uid, one.reason];
    case "preemption":
    case "eviction":
      return [one.kind, one.pod.uid];
    case "conditions":
      return [one.kind, one.condition, one.status, Date.parse(one.at)];
    case "resize":
      return [one.kind, one.pod.uid, one.reason, one.generation ?? Date.parse(one.at)];
    case "claims":
      return [one.kind, one.pod.uid, prepareWords(one.message).own];
    case "probes":
      return [one.kind, one.pod.uid, one.container, Date.parse(one.at)];
    case "image-gc":
      return [one.kind, Date.parse(one.at), one.images.map((image) => image.id ?? image.names[0] ?? "").sort()];
  }
}

/** The kubelet's reason, as in the pod's status, its event or the node's condition; null: none. */
export function reasonOfOutcome(one: Outcome): string | null {
  switch (one.kind) {
    case "admission":
      return one.admitted ? null : one.reason;
    case "preemption":
      return "Preempting";
    case "eviction":
      return "Evicted";
    case "conditions":
      return one.condition;
    case "resize":
      return one.reason;
    case "claims":
      return one.prepared ? null : PREPARE_FAILED;
    case "probes":
    case "image-gc":
      return null;
  }
}

/**
 * Merges two sightings of one outcome. INVARIANT: the order and number of sightings do not matter. The earliest time
 * counts, since a status is written later; of two texts or objects, the longer one.
 */
export function mergedOutcome<O extends Outcome>(a: O, b: O): O {
  const merged: Record<string, unknown> = {};
  for (const field of FIELDS.get(a.kind) as readonly (keyof O & string)[]) {
    const value = mergedField(field, a[field], b[field]);
    if (value !== undefined) merged[field] = value;
  }
  return merged as O;
}
/** The fields in the order in which they are stored. */
const FIELDS: ReadonlyMap<OutcomeKind, readonly string[]> = new Map(
  outcome.options.map(({ shape }) => [shape.kind.value, Object.keys(shape)]),
);
function mergedField(field: string, a: unknown, b: unknown): unknown {
  if (a === undefined || b === undefined) return a ?? b;
  if (field === "seenIn") return [...new Set([...(a as string[]), ...(b as string[])])].sort();
  if (field === "at" || field === "after" || field === "podLeftAt") {
    const [first, second] = [Date.parse(a as string), Date.parse(b as string)];
    return first === second ? larger(a, b) : first < second ? a : b;
  }
  return larger(a, b);
}
/** The larger value by the length of its JSON, then alphabetically. */
function larger(a: unknown, b: unknown): unknown {
  const [first, second] = [JSON.stringify(a), JSON.stringify(b)];
  if (first.length !== second.length) return first.length > second.length ? a : b;
  return first >= second ? a : b;
}

const sideValue = z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string())]);
const side = () => z.record(z.string(), sideValue);
export type SideValue = Form<typeof sideValue>;
/** The decided fields of one side, in the order in which they are compared. */
export type Side = Readonly<Record<string, SideValue>>;

/** The result of comparing an outcome with the decision. */
export const comparison = z.lazy(() =>
  z.strictObject({
    verdict: z.enum(AGREEMENT_VERDICTS),
    snapshotId: z.string().nullable().describe("the id of the last snapshot before the outcome; null: there was none"),
    snapshotAgeMs: z
      .number()
      .nullable()
      .describe("the milliseconds between the observation of the snapshot and the outcome"),
    policyVersion: z.string().nullable().describe("the policy version of the decision; null: no decision was made"),
    kubelet: side().describe("what the kubelet decided, field by field"),
    nodewise: side()
      .nullable()
      .describe("the decision of Nodewise on the snapshot, field by field; null: no decision was made"),
    measured: z
      .array(z.strictObject({ field: z.string(), kubelet: sideValue, nodewise: sideValue }))
      .describe(
        "values that are not compared: amounts that each side measured at its own time, and the text of a driver, which only the kubelet has",
      ),
    difference: z
      .strictObject({ field: z.string(), kubelet: sideValue, nodewise: sideValue })
      .nullable()
      .describe("the first field that differs; null: no field differs, or nothing was compared"),
    why: z
      .strictObject({
        code: z.enum(NOT_COMPARABLE_CODES),
        message: z.string(),
        missing: z.array(z.string()).describe("the paths of the inputs that were not known"),
      })
      .nullable()
      .describe("why the outcome is not comparable; null: it is comparable"),
  }),
);
export type Comparison = Form<typeof comparison>;
