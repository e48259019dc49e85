import * as z from "zod";
import { PROBE_TYPES } from "../model/probe.ts";
import { FINDING_LEVELS, PROBE_FINDINGS, PROBE_HANDLERS } from "../model/probes-decision.ts";
import { OUTCOME_WORDS } from "../model/probes-outcomes.ts";
import { podRef } from "./manager-answers.ts";

/** A dry run of probes, as the API answers it. */
const integer = z.number();
const at = z.number().describe("milliseconds since the pod's probe workers began");
const ms = z.number().describe("milliseconds");
const containerId = z.string().describe("c0: the first container of its name; c1: that after one restart");
const type = z.enum(PROBE_TYPES);
const span = z.strictObject({ fromMs: at, toMs: at.nullable().describe("null: it still holds at the end") });
const spans = z.array(span);

const probeRun = z.strictObject({
  type,
  handler: z.enum(PROBE_HANDLERS),
  initialDelaySeconds: integer,
  timeoutSeconds: integer,
  periodSeconds: integer,
  successThreshold: integer,
  failureThreshold: integer,
  terminationGracePeriodSeconds: integer.nullable().describe("null: the pod's"),
  reach: z
    .strictObject({
      soonestFailureMs: ms.describe("after the container's start, when every attempt fails at once"),
      slowestFailureMs: ms.describe("from the moment that nothing answers any more until it is noticed"),
      slowestSuccessMs: ms.describe("from the moment that all is well again until it is noticed"),
      slowestEndMs: ms.nullable().describe("until the container is ended for sure; null: it ends none"),
    })
    .describe("what the settings alone say"),
  attempts: z.array(
    z.strictObject({ atMs: at, containerId, outcome: z.enum(OUTCOME_WORDS).describe("as scripted"), tookMs: ms }),
  ),
  results: z
    .array(z.strictObject({ atMs: at, containerId, result: z.enum(["Unknown", "Success", "Failure"]) }))
    .describe("told on change only, the initial value first"),
  onHold: spans.describe("when it waited for another container"),
});
const container = z.strictObject({
  container: z.string(),
  sidecar: z.boolean(),
  restarts: integer,
  firstRestartAtMs: at.nullable(),
  runs: z.array(
    z.strictObject({
      id: containerId,
      startedAtMs: at,
      endedAtMs: at.nullable(),
      endedBy: type.nullable().describe("the probe that ended it"),
    }),
  ),
  started: spans,
  ready: spans,
  probes: z.array(probeRun),
});
const event = z.strictObject({
  type: z.enum(["Normal", "Warning"]),
  reason: z.string(),
  message: z.string(),
  container: z.string(),
  count: integer,
  firstAtMs: at,
  lastAtMs: at,
});
const quirk = z
  .strictObject({
    code: z.string(),
    what: z.string(),
    issues: z.array(integer).describe("of kubernetes/kubernetes"),
    container: z.string(),
    type,
    times: integer,
    firstAtMs: at,
  })
  .describe("what the kubelet does otherwise than its documentation, and this dry run went by");
const finding = z.strictObject({
  code: z.enum(PROBE_FINDINGS),
  level: z.enum(FINDING_LEVELS),
  path: z.string().describe("of the pod: spec.containers[0].livenessProbe.timeoutSeconds"),
  container: z.string(),
  type,
  numbers: z.record(z.string(), z.union([z.string(), z.number()])),
});

export const probesDecision = z.strictObject({
  pod: podRef,
  strict: z.boolean(),
  endMs: at,
  truncated: z.boolean().describe("true: it stopped at endMs, for there were too many attempts"),
  restarts: integer,
  firstRestartAtMs: at.nullable(),
  ready: spans.describe("when all containers were ready"),
  containers: z.array(container).describe("those that a kubelet probes, sidecars first"),
  events: z.array(event).describe("as the kubelet records them for the container, the same ones counted together"),
  quirks: z.array(quirk),
  findings: z.array(finding).describe("what of the settings is likely to go wrong, the worst first"),
});
