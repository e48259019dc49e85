import * as z from "zod";
import { err, ok, type Result } from "../base/result.ts";
import { count } from "./fields.ts";
import { type Form, integer, milliseconds, podRef } from "./forms.ts";
import { PROBE_TYPES, type ProbeSpec } from "./probe-spec.ts";

/** How an attempt may end. `timeout`: no answer in time, a failure; `hang`: an HTTP body that never ends, an error. */
export const OUTCOME_WORDS = ["ok", "fail", "error", "warn", "timeout", "hang"] as const;
export type OutcomeWord = (typeof OUTCOME_WORDS)[number];
export interface ScriptedOutcome {
  readonly word: OutcomeWord;
  /** Null: at once, and for `timeout` and `hang` the probe's whole timeout. */
  readonly tookMs: number | null;
}
/** Answers of successive attempts; the last repeats. */
export type OutcomeScript = readonly ScriptedOutcome[];

/** Outcomes of one script. */
export const MAX_OUTCOMES = 10_000;
const ITEM = /^([a-z]+)(?:@(\d{1,7}(?:\.\d{1,3})?)(ms|s))?(?:\*(\d{1,6}))?$/;
const WANTED = `one of ${OUTCOME_WORDS.join(", ")}, with @TIME for how long it takes and *N for how often, such as fail@200ms*3`;

/** `ok,ok,fail*3,error`, or a list of such items. Error: which item is none, and what one is. */
export function parseOutcomes(input: string | readonly string[]): Result<OutcomeScript, string> {
  const items = typeof input === "string" ? input.split(",") : input;
  const script: ScriptedOutcome[] = [];
  for (const item of items) {
    const [, word, amount, unit, times = "1"] = ITEM.exec(item.trim()) ?? [];
    if (word === undefined || !isWord(word)) return err(`\`${item.trim().slice(0, 40)}\` is no outcome: ${WANTED}`);
    if (Number(times) === 0 || script.length + Number(times) > MAX_OUTCOMES) {
      return err(`\`${item.trim()}\`: an outcome comes once at least, and ${MAX_OUTCOMES} of them are enough`);
    }
    const tookMs = amount === undefined ? null : Math.round(Number(amount) * (unit === "s" ? 1000 : 1));
    const outcome: ScriptedOutcome = { word, tookMs };
    for (let i = 0; i < Number(times); i++) script.push(outcome);
  }
  return ok(script);
}
const isWord = (word: string): word is OutcomeWord => (OUTCOME_WORDS as readonly string[]).includes(word);

/** When a probe is asked and what counts; all but how it asks. */
export type ProbeTiming = Omit<ProbeSpec, "handler">;
export const PROBE_HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc"] as const;
export type ProbeHandlerName = (typeof PROBE_HANDLERS)[number];

const FINDING_LEVELS = ["error", "warning", "hint"] as const;
export const PROBE_FINDINGS = [
  "unknown-port-name",
  "liveness-before-started",
  "startup-too-short",
  "liveness-not-after-readiness",
  "same-as-readiness",
  "one-failure-restarts",
  "one-failure-unready",
  "timeout-over-period",
  "exec-often",
  "long-delay",
  "delay-beside-startup",
  "success-threshold-carries",
  "grace-over-pod",
  "grace-below-least",
  "long-grace",
  "host-outside-pod",
  "never-restarted",
] as const;
export type ProbeFindingCode = (typeof PROBE_FINDINGS)[number];

const at = () => z.number().describe("milliseconds since the start of the pod's probe workers");
const span = () =>
  z.strictObject({
    fromMs: at(),
    toMs: at().nullable().describe("the end in milliseconds; null: the state still holds at the end of the dry run"),
  });
export type Span = Form<typeof span>;
const containerId = () =>
  z.string().describe("c0: the first container of its name; c1: the container after one restart");
const probeType = () => z.enum(PROBE_TYPES);

const attempt = () =>
  z.strictObject({
    atMs: at(),
    containerId: containerId(),
    outcome: z.enum(OUTCOME_WORDS).describe("the outcome of the attempt, as `outcomes` has it"),
    tookMs: milliseconds,
  });
const resultChange = () =>
  z.strictObject({ atMs: at(), containerId: containerId(), result: z.enum(["Unknown", "Success", "Failure"]) });
export type ProbeResultChange = Form<typeof resultChange>;
const reach = () =>
  z
    .strictObject({
      soonestFailureMs: milliseconds.describe(
        "the shortest time in milliseconds from the container's start to the failure of the probe, if every attempt fails immediately",
      ),
      slowestFailureMs: milliseconds.describe(
        "the longest time in milliseconds from the moment that nothing answers any more to the failure of the probe",
      ),
      slowestSuccessMs: milliseconds.describe(
        "the longest time in milliseconds from the moment that all attempts succeed again to the success of the probe",
      ),
      slowestEndMs: milliseconds
        .nullable()
        .describe(
          "the longest time in milliseconds from the fault to the end of the container; null: the probe ends no container",
        ),
    })
    .describe("the times that follow from the settings alone");
export type ProbeReach = Form<typeof reach>;
const probeRun = () =>
  z.strictObject({
    type: probeType(),
    handler: z.enum(PROBE_HANDLERS),
    initialDelaySeconds: integer,
    timeoutSeconds: integer,
    periodSeconds: integer,
    successThreshold: integer,
    failureThreshold: integer,
    terminationGracePeriodSeconds: integer
      .nullable()
      .describe("the probe's own grace period in seconds; null: the pod's grace period applies"),
    reach: reach(),
    attempts: z.array(attempt()),
    results: z
      .array(resultChange())
      .describe("the results of the probe, the initial one first; only changes are listed"),
    onHold: z.array(span()).describe("the times at which the probe waited for another container"),
  });
export type ProbeRun = Form<typeof probeRun>;
const containerRun = () =>
  z.strictObject({
    id: containerId(),
    startedAtMs: at(),
    endedAtMs: at().nullable(),
    endedBy: probeType().nullable().describe("the type of the probe that ended the container; null: no probe ended it"),
  });
export type ContainerRun = Form<typeof containerRun>;
const probedContainer = () =>
  z.strictObject({
    container: z.string(),
    sidecar: z.boolean(),
    restarts: count,
    firstRestartAtMs: at().nullable(),
    runs: z.array(containerRun()),
    started: z.array(span()).describe("the times at which status.started of the container is true"),
    ready: z.array(span()),
    probes: z.array(probeRun()),
  });
export type ProbedContainer = Form<typeof probedContainer>;

const finding = () =>
  z.strictObject({
    code: z.enum(PROBE_FINDINGS),
    level: z.enum(FINDING_LEVELS),
    path: z.string().describe("the path in the pod, such as spec.containers[0].livenessProbe.timeoutSeconds"),
    container: z.string(),
    type: probeType(),
    numbers: z.record(z.string(), z.union([z.string(), z.number()])),
  });
/** A setting that is likely to go wrong. */
export type ProbeFinding = Form<typeof finding>;
/** The behaviour of the kubelet that differs from its documentation, as far as a dry run can meet it. */
export const PROBE_QUIRKS = [
  "sleep-ignores-stop",
  "counters-carry-over",
  "hang-discarded",
  "error-discarded",
  "ready-kept-on-restart",
] as const;
export type ProbeQuirk = (typeof PROBE_QUIRKS)[number];
const quirk = () =>
  z
    .strictObject({
      code: z.enum(PROBE_QUIRKS),
      what: z.string(),
      issues: z.array(integer).describe("the numbers of the issues in kubernetes/kubernetes"),
      container: z.string(),
      type: probeType(),
      times: count,
      firstAtMs: at(),
    })
    .describe("a behaviour of the kubelet that differs from its documentation and that occurred in this dry run");
export type QuirkHit = Form<typeof quirk>;
const event = () =>
  z.strictObject({
    type: z.enum(["Normal", "Warning"]),
    reason: z.string(),
    message: z.string(),
    container: z.string(),
    count,
    firstAtMs: at(),
    lastAtMs: at(),
  });
export type ProbeNodeEvent = Form<typeof event>;

export const PROBES_REASONS = [
  "ended_by_probe",
  "ready_once_started",
  "slowest_detection",
  "started_at_once",
  "quirk_sleep_ignores_stop",
  "quirk_counters_carry_over",
  "quirk_hang_discarded",
  "quirk_error_discarded",
  "quirk_ready_kept_on_restart",
] as const;

/** The decision of the kind `probes`. */
export const probesDecision = z.lazy(() =>
  z.strictObject({
    pod: podRef,
    strict: z.boolean(),
    endMs: at().describe("the end of the dry run, in milliseconds since the start of the pod's probe workers"),
    truncated: z.boolean().describe("true: the dry run stopped at `endMs`, because there were too many attempts"),
    restarts: count,
    firstRestartAtMs: at().nullable(),
    ready: z.array(span()).describe("the times at which all containers are ready"),
    containers: z.array(probedContainer()).describe("the containers that the kubelet probes, sidecars first"),
    events: z
      .array(event())
      .describe("the events that the kubelet records for the containers; equal events are counted together"),
    quirks: z.array(quirk()),
    findings: z.array(finding()).describe("the settings that are likely to cause problems, the worst first"),
  }),
);
export type ProbesDecision = Form<typeof probesDecision>;
