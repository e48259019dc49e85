import { EXPLAIN, REFUSAL_CODES } from "../model/decision.ts";
import { GC_OPERATIONS } from "../model/garbage-collection.ts";
import type { ProblemCode } from "../routes/problem.ts";
import type { AnswerName } from "./answers.ts";
import { type JsonSchema, ref } from "./input-schemas.ts";
import { PROBE_GUARD_ASK } from "./probe-guard-ask.ts";
import { PROBES_ASK } from "./probes-ask.ts";

export interface Parameter {
  readonly in: "path" | "query" | "header";
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
}
/** What the document says of one route. */
export interface Operation {
  readonly tag: "decide" | "history" | "operate" | "read about it";
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: {
    readonly type: string;
    readonly schema: JsonSchema;
    readonly example: unknown;
    readonly optional?: boolean;
  };
  /** Status -> what it answers: a schema's name, or the media type of something else. */
  readonly answers: Readonly<Record<number, AnswerName | { readonly type: string; readonly of?: AnswerName }>>;
  /** Beside those that every route of its kind may answer. */
  readonly problems: readonly ProblemCode[];
}

export const path = (name: string, description: string, schema: JsonSchema = { type: "string" }): Parameter => ({
  in: "path",
  name,
  description,
  schema,
});
export const query = (name: string, description: string, schema: JsonSchema = { type: "string" }): Parameter => ({
  in: "query",
  name,
  description,
  schema,
});
export const json = (schema: JsonSchema, example: unknown, optional = false) => ({
  type: "application/json",
  schema,
  example,
  optional,
});
export const time: JsonSchema = { type: "string", format: "date-time" };

const BYTES: JsonSchema = { type: "integer", minimum: 0 };
const FILE_SYSTEM: JsonSchema = {
  type: "object",
  additionalProperties: false,
  required: ["capacityBytes", "availableBytes"],
  properties: { capacityBytes: BYTES, availableBytes: BYTES },
};
const ASK: JsonSchema = {
  description: "allocatable and cgroups ask nothing beyond the snapshot; without an ask the others tell what is there",
  anyOf: [
    { type: "null" },
    {
      type: "object",
      additionalProperties: false,
      properties: {
        pod: {
          description: "the pod that asks to come in, or NAMESPACE/NAME of one of the snapshot",
          anyOf: [ref("Pod"), { type: "string" }, { type: "null" }],
        },
        failureReasons: {
          type: "array",
          description: "preemption: what the predicates failed with; absent: they are asked",
          items: { type: "object" },
        },
        statsAfterReclaim: {
          description: "eviction: the Summary after the node-level reclaim ran",
          anyOf: [ref("Stats"), { type: "null" }],
        },
        images: {
          description:
            "eviction: the `next` of the node's last image-gc, which tells what is old enough to be reclaimed; absent: what the history remembers of it",
          anyOf: [{ type: "object" }, { type: "null" }],
        },
        operation: {
          type: "string",
          enum: GC_OPERATIONS,
          description:
            "image-gc, container-gc: garbage-collect as the kubelet's timer does it (the default), or delete-unused as its eviction manager does it",
        },
        done: {
          description: "image-gc, container-gc: how the removals of this very pass ended so far; absent: it is a plan",
          anyOf: [ref("RemovalsDone"), { type: "null" }],
        },
        error: {
          description:
            "image-gc, container-gc: what the runtime answered instead of its lists; the pass failed, and the snapshot needs none of them",
          anyOf: [{ type: "string" }, { type: "null" }],
        },
        fileSystem: {
          description: "image-gc: the image file system after the images that were too old are gone",
          anyOf: [FILE_SYSTEM, { type: "null" }],
        },
        afterContainerGc: {
          type: "boolean",
          default: false,
          description: "image-gc: take the containers for gone that a container-gc of the same operation removes first",
        },
        ...PROBES_ASK,
        ...PROBE_GUARD_ASK,
        facts: {
          type: "object",
          description:
            "eviction, image-gc: the next of the node's last answer; absent: what the history remembers counts",
        },
      },
    },
  ],
};
export const decisionRequest = (
  required: readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
): JsonSchema => ({
  type: "object",
  description: "exactly one of snapshot and snapshotId",
  additionalProperties: false,
  required,
  properties: {
    ...properties,
    snapshot: ref("NodeSnapshot"),
    snapshotId: { type: "string", pattern: "^[0-9a-f]{32}$", description: "one that the history holds" },
    ask: ASK,
    explain: {
      type: "string",
      enum: EXPLAIN,
      default: "reasons",
      description:
        "reasons: of every value, and of what was left unset; full: the same for kinds that weigh no alternatives",
    },
  },
});
export const REPLAY_REQUEST: JsonSchema = {
  type: "object",
  description: "at most one of kubeletConfiguration and kubeletConfigurationPatch; without either nothing is changed",
  additionalProperties: false,
  properties: {
    kubeletConfiguration: {
      ...ref("KubeletConfiguration"),
      description: "in the place of the whole recorded one: a field that it leaves out has the kubelet's default",
    },
    kubeletConfigurationPatch: {
      type: "object",
      description: "changes of the recorded one, as a JSON merge patch (RFC 7396): null takes a field away",
    },
    policyVersion: { type: "string", description: "the only one that a server has is its own" },
  },
};
export const idempotencyKey: Parameter = {
  in: "header",
  name: "Idempotency-Key",
  description:
    "A retry with the same key answers the first decision. Without one, the same request has the same id anyway.",
  schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
};
export const decisionId = path("decision", "A decision's id", { type: "string", pattern: "^[0-9a-f]{32}$" });
export const node = path("node", "A node's name");
export const BODY: readonly ProblemCode[] = [
  "malformed_body",
  "malformed_json",
  "invalid_input",
  "invalid_query",
  "body_too_large",
  "unsupported_media_type",
  "unsupported_encoding",
];
export const REFUSALS: readonly ProblemCode[] = REFUSAL_CODES;
