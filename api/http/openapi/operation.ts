import type { JsonSchema } from "../../base/json-schema.ts";
import { SNAPSHOT } from "../../documents/kind-examples.ts";
import { REFUSAL_CODES } from "../../model/decision.ts";
import { EXPORT_FORMAT } from "../../model/export-row.ts";
import { ID as ID_FORM } from "../../service/body-form.ts";
import type { ProblemCode } from "../../service/problem.ts";
import type { AnswerName } from "./answers.ts";

interface Parameter {
  readonly in: "path" | "query" | "header";
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
}
/** The document's entry for one route. */
export interface Operation {
  readonly tag: "decide" | "history" | "operate" | "read about it";
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: {
    readonly type: string;
    readonly schema: JsonSchema;
    readonly example: unknown;
    /** In its place, by name: of a body that has several forms. */
    readonly examples?: Readonly<Record<string, unknown>>;
    readonly optional?: boolean;
  };
  /** Status -> what it answers: a schema's name, or the media type of something else. */
  readonly answers: Readonly<Record<number, AnswerName | { readonly type: string; readonly of?: AnswerName }>>;
  /** True: the answer with 200 may be had as CSV as well. */
  readonly csv?: true;
  /** True: a GET without ETag, since every answer differs. */
  readonly untagged?: boolean;
  /** The problems that it may answer, besides those of every route of its sort. */
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
export const idempotencyKey: Parameter = {
  in: "header",
  name: "Idempotency-Key",
  description:
    "A retry with the same key gets the answer of the first request. Without a key, the same request has the same id as well.",
  schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
};
export const decisionId = path("decision", "A decision's id, or at least its first 8 digits", {
  type: "string",
  pattern: "^[0-9a-f]{8,32}$",
});
export const node = path("node", "A node's name");
export const BODY: readonly ProblemCode[] = [
  "malformed_body",
  "malformed_json",
  "invalid_input",
  "invalid_query",
  "body_too_large",
  "request_timeout",
  "overloaded",
  "unsupported_media_type",
  "unsupported_encoding",
];
export const REFUSALS: readonly ProblemCode[] = REFUSAL_CODES;

export const ID: JsonSchema = { type: "string", pattern: ID_FORM.source };

/** Small and whole: each may be posted as it is, which a test does. */
export const DECISION = { snapshot: SNAPSHOT, explain: "reasons" } as const;
export const BATCH = ["allocatable", "cgroups"].map((kind) => JSON.stringify({ kind, snapshot: SNAPSHOT })).join("\n");
export const EXPORT_LINES = [
  {
    type: "nodewise-history",
    formatVersion: EXPORT_FORMAT,
    version: "0.1.0",
    exportedAt: "2026-01-31T12:00:00Z",
    oldestAt: null,
  },
  {
    type: "hour",
    hourMs: 1769860800000,
    node: "n1",
    decisions: 12,
    refused: 0,
    pressured: 0,
    evicted: 0,
    removed: 0,
    refusals: [],
    outcomes: [],
  },
]
  .map((line) => JSON.stringify(line))
  .join("\n");
export const TURN = { snapshot: SNAPSHOT, decisions: [{ kind: "cgroups" }, { kind: "allocatable" }] } as const;
export const REPLAY = { kubeletConfigurationPatch: { kubeReserved: { cpu: "500m", memory: "1Gi" } } } as const;
export const REPLAY_HISTORY = { since: "2026-01-01T00:00:00Z", ...REPLAY } as const;
export const UPGRADE = { to: "1.37", from: "1.36", kubeletConfiguration: { memoryThrottlingFactor: 0.8 } } as const;
export const WHY = {
  pod: "shop/web",
  documents: [
    {
      kind: "Event",
      involvedObject: { kind: "Pod", namespace: "shop", name: "web" },
      type: "Warning",
      reason: "OutOfcpu",
      message: "Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 1800",
      lastTimestamp: "2026-01-31T12:00:00Z",
    },
  ],
} as const;
export const LINT = { kubeletConfiguration: { evictionHard: { "memory.available": "500Mi" }, maxPods: 250 } } as const;
export const OUTCOMES = {
  outcomes: [
    {
      kind: "admission",
      at: "2026-01-31T12:00:05Z",
      seenIn: ["pod-status"],
      pod: { namespace: "default", name: "batch", uid: "2f6b8c1d-8a17-4a53-9a55-0d7f4e1c2b3a" },
      admitted: false,
      reason: "OutOfcpu",
      message: "Node didn't have enough resource: cpu, requested: 8000, used: 250, capacity: 4000",
    },
  ],
} as const;
export const results = (decisionId: string) => ({
  decisionId,
  seq: 1,
  at: "2026-01-31T12:00:01Z",
  dryRun: false,
  complete: true,
  results: [
    {
      status: "applied",
      op: "write",
      path: "/kubepods.slice",
      file: "cpu.weight",
      from: "100",
      to: "152",
      before: "100",
      readBack: "152",
    },
  ],
});
