import { LONGEST_DRY_RUN_SECONDS, PROBES_DEFAULTS } from "../model/probes-ask.ts";
import type { JsonSchema } from "./input-schemas.ts";

const SCRIPT: JsonSchema = {
  description:
    "outcomes of successive attempts, the last repeats: ok, fail, error (could not be asked), warn, timeout, hang (the body breaks off), each with @TIME and *N: `ok,fail@200ms*3`, or a list of such items",
  anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }],
};
const seconds = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: "number",
  minimum: 0,
  maximum: LONGEST_DRY_RUN_SECONDS,
  description: `probes: ${description}`,
  ...more,
});

/** What `probes` is asked beside the pod. */
export const PROBES_ASK: Readonly<Record<string, JsonSchema>> = {
  container: {
    description: "probes: only this one of the pod; absent: all",
    anyOf: [{ type: "string" }, { type: "null" }],
  },
  outcomes: {
    description: "probes: what attempts are answered, of all types or by type; absent: always ok",
    anyOf: [
      SCRIPT,
      {
        type: "object",
        additionalProperties: false,
        properties: { startup: SCRIPT, liveness: SCRIPT, readiness: SCRIPT },
      },
    ],
  },
  seconds: seconds("how long the dry run is", { exclusiveMinimum: 0, default: PROBES_DEFAULTS.seconds }),
  strict: {
    type: "boolean",
    default: PROBES_DEFAULTS.strict,
    description: "probes: the documented behaviour in the place of the kubelet's quirks",
  },
  stopSeconds: seconds("how long a container takes to end; its grace is the most", {
    default: PROBES_DEFAULTS.stopSeconds,
  }),
  backOff: {
    type: "boolean",
    default: PROBES_DEFAULTS.backOff,
    description: "probes: CrashLoopBackOff between restarts",
  },
  kubeletRestartSeconds: {
    description: "probes: when the kubelet itself restarts; absent: it does not",
    anyOf: [seconds("the moment"), { type: "null" }],
  },
  jitter: {
    type: "number",
    minimum: 0,
    maximum: 1,
    default: PROBES_DEFAULTS.jitter,
    description: "probes: the share of its period that each worker sleeps after that restart",
  },
};
