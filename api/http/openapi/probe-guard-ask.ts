import { LIMITS } from "../../model/limits.ts";
import { type JsonSchema, strictObject } from "./json-schema.ts";

const SECONDS: JsonSchema = { type: "number", exclusiveMinimum: 0, maximum: 86_400 };
const GUARD = strictObject(
  {
    windowSeconds: { ...SECONDS, description: "failures so far apart, or closer, belong together" },
    least: {
      description: "so many unrelated groups, or this share of all groups: a storm; of either at least 2",
      anyOf: [
        strictObject({ groups: { type: "integer", minimum: 1, maximum: LIMITS.runtimeContainers } }, ["groups"]),
        strictObject({ share: { type: "number", minimum: 0, maximum: 1 } }, ["share"]),
      ],
    },
    holdSeconds: { ...SECONDS, description: "no kill is held longer" },
  },
  ["windowSeconds", "least", "holdSeconds"],
);
const TEXT: JsonSchema = { type: "string", maxLength: LIMITS.textLength };
const FAILED = {
  containerId: { ...TEXT, minLength: 1 },
  container: { ...TEXT, description: "NAMESPACE/POD/CONTAINER, for people" },
  group: { ...TEXT, description: "pods of one owner are one group: what they have in common is no storm" },
};
const list = (description: string, items: JsonSchema): JsonSchema => ({
  type: "array",
  maxItems: LIMITS.runtimeContainers,
  description,
  items,
});
const AGO: JsonSchema = { type: "number", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** The ask of `probe-guard`. */
export const PROBE_GUARD_ASK: Readonly<Record<string, JsonSchema>> = {
  guard: { ...GUARD, description: "when kills are held" },
  groups: {
    type: "integer",
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 0,
    description: "groups of pods that have a liveness probe",
  },
  known: list(
    "`known` of the answer before, as much later as it is, and containers whose attempts have begun to fail since then",
    strictObject({ ...FAILED, failedAgoMs: AGO, heldForMs: AGO }, [...Object.keys(FAILED), "failedAgoMs"]),
  ),
  failed: list("containers whose liveness probe has failed since then", strictObject(FAILED, Object.keys(FAILED))),
  recovered: list("ids of containers that answer again", TEXT),
  gone: list("ids of containers that nobody probes any more", TEXT),
};
