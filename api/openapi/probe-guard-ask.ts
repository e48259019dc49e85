import { LIMITS } from "../model/limits.ts";
import type { JsonSchema } from "./input-schemas.ts";

const SECONDS: JsonSchema = { type: "number", exclusiveMinimum: 0, maximum: 86_400 };
const GUARD: JsonSchema = {
  type: "object",
  additionalProperties: false,
  required: ["windowSeconds", "least", "holdSeconds"],
  properties: {
    windowSeconds: { ...SECONDS, description: "failures so far apart, or closer, belong together" },
    least: {
      description: "so many unrelated groups, or this share of all groups: a storm; of either at least 2",
      anyOf: ["groups", "share"].map((name) => ({
        type: "object",
        additionalProperties: false,
        required: [name],
        properties: {
          [name]:
            name === "share"
              ? { type: "number", minimum: 0, maximum: 1 }
              : { type: "integer", minimum: 1, maximum: LIMITS.runtimeContainers },
        },
      })),
    },
    holdSeconds: { ...SECONDS, description: "no kill is held longer" },
  },
};
const FAILED = {
  containerId: { type: "string", minLength: 1 },
  container: { type: "string", description: "NAMESPACE/POD/CONTAINER, for people" },
  group: { type: "string", description: "pods of one owner are one group: what they have in common is no storm" },
};
const list = (description: string, items: JsonSchema): JsonSchema => ({
  type: "array",
  maxItems: LIMITS.runtimeContainers,
  description: `probe-guard: ${description}`,
  items,
});
const object = (properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema => ({
  type: "object",
  additionalProperties: false,
  required,
  properties,
});
const AGO: JsonSchema = { type: "number", minimum: 0 };

/** What `probe-guard` is asked. */
export const PROBE_GUARD_ASK: Readonly<Record<string, JsonSchema>> = {
  guard: { description: "probe-guard: when kills are held", anyOf: [GUARD, { type: "null" }] },
  groups: {
    type: "integer",
    minimum: 0,
    default: 0,
    description: "probe-guard: groups of pods that have a liveness probe",
  },
  known: list(
    "`known` of the answer before, as much later as it is, and containers whose attempts have begun to fail since then",
    object({ ...FAILED, failedAgoMs: AGO, heldForMs: { anyOf: [AGO, { type: "null" }] } }, [
      ...Object.keys(FAILED),
      "failedAgoMs",
    ]),
  ),
  failed: list("containers whose liveness probe has failed since then", object(FAILED, Object.keys(FAILED))),
  recovered: list("ids of containers that answer again", { type: "string" }),
  gone: list("ids of containers that nobody probes any more", { type: "string" }),
};
