import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { nearName } from "../base/near-name.ts";
import { type Fields, fieldsOf } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { decodeForm } from "./decode.ts";
import { optional, optionalOr, text } from "./fields.ts";
import { type KindSpec, PLAIN } from "./kind-spec.ts";
import { containersOf, type Pod } from "./pod.ts";
import { decodePodAsk, type PodAsk, podAskForm } from "./pod-ask.ts";
import { PROBE_TYPES, type ProbeType, podProbe } from "./probe-spec.ts";
import { MAX_OUTCOMES, OUTCOME_WORDS, PROBES_REASONS, parseOutcomes, probesDecision } from "./probes-decision.ts";
import { PROBE_FIELD, probesIssues } from "./probes-issues.ts";

/**
 * The probe fields of a container. Its other fields do not matter here, but a name that is nearly one of these is taken for a
 * misspelt probe.
 */
const FIELDS: readonly string[] = Object.values(PROBE_FIELD);
const NO_FIELD = "no such field";
const PROBE = Object.keys(podProbe.shape);
/** v1.ExecAction, v1.HTTPGetAction, v1.TCPSocketAction, v1.GRPCAction, of which a print stands for what may be secret. */
const HANDLER: Readonly<Record<string, readonly string[]>> = {
  exec: ["command", "print"],
  httpGet: ["scheme", "host", "port", "path", "httpHeaders", "print"],
  tcpSocket: ["host", "port"],
  grpc: ["port", "service"],
};
/** The maximum length of a name that is compared with the known ones. */
const LONGEST_NAME = 64;

/**
 * Fields of a posted pod's probes that v1.Probe does not have, with the name that may have been meant: a misspelt
 * field silently gets its default, and a strict API server refuses it.
 */
function unknownProbeFields(pod: unknown, at: string): readonly InputIssue[] {
  const { spec } = fieldsOf(pod);
  const found = ["initContainers", "containers"].flatMap((list) => {
    const all = fieldsOf(spec)[list];
    if (!Array.isArray(all)) return [];
    return all.slice(0, LIMITS.containersPerPod).flatMap((item, i) => {
      const container = fieldsOf(item);
      const here = joinPath(at, ["spec", list, i]);
      const meant = unknown(container, FIELDS, here).filter(({ message }) => message !== NO_FIELD);
      return [...meant, ...FIELDS.flatMap((field) => ofProbe(fieldsOf(container[field]), joinPath(here, [field])))];
    });
  });
  return found.slice(0, LIMITS.issues);
}

function ofProbe(probe: Fields, at: string): readonly InputIssue[] {
  const ofHandlers = Object.entries(HANDLER).flatMap(([handler, known]) =>
    unknown(fieldsOf(probe[handler]), known, joinPath(at, [handler])),
  );
  return [...unknown(probe, PROBE, at), ...ofHandlers];
}

const unknown = (given: Fields, known: readonly string[], at: string): readonly InputIssue[] =>
  Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = name.length > LONGEST_NAME ? null : nearName(name, known);
      return { path: joinPath(at, [name]), message: near === null ? NO_FIELD : `${NO_FIELD}; \`${near}\`?` };
    });

const LONGEST_DRY_RUN_SECONDS = 86_400;

const TIMES = "0{0,5}[1-9]|0{0,4}[1-9][0-9]|0{0,3}[1-9][0-9]{2}|0{0,2}[1-9][0-9]{3}|0?10000";
const ITEM = `\\s*(?:${OUTCOME_WORDS.join("|")})(?:@[0-9]{1,7}(?:[.][0-9]{1,3})?m?s)?(?:[*](?:${TIMES}))?\\s*`;
const script = z
  .union([
    text.meta({ pattern: `^${ITEM}(?:,${ITEM})*$` }),
    z.array(text.meta({ pattern: `^${ITEM}$` })).max(MAX_OUTCOMES),
  ])
  .transform((given, ctx): readonly string[] => {
    const items = (typeof given === "string" ? given.split(",") : given).map((item) => item.trim());
    const parsed = parseOutcomes(items);
    if (parsed.ok) return items;
    ctx.addIssue({ code: "custom", message: parsed.error });
    return z.NEVER;
  })
  .describe(
    `the outcomes of successive attempts, of which the last one repeats: ok, fail, error (the probe cannot be run), warn, timeout, hang (the body of the answer breaks off); each optionally with @TIME (how long the attempt takes) and *N (how often): \`ok,fail@200ms*3\`, or a list of such items; at most ${MAX_OUTCOMES} attempts`,
  );
const byType = z.strictObject({ startup: optional(script), liveness: optional(script), readiness: optional(script) });
const isByType = (v: unknown): boolean => typeof v === "object" && v !== null && !Array.isArray(v);
type OutcomesByType = Readonly<Partial<Record<ProbeType, readonly string[]>>>;
/** A list alone is for the probes of every type. */
const outcomes = z.unknown().transform((given, ctx): OutcomesByType => {
  const parsed = isByType(given) ? byType.safeParse(given) : script.safeParse(given);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) ctx.addIssue({ code: "custom", path: [...path], message });
    return z.NEVER;
  }
  if (isByType(given)) return parsed.data as OutcomesByType;
  return Object.fromEntries(PROBE_TYPES.map((type) => [type, parsed.data as readonly string[]]));
});
const seconds = z.number().min(0).max(LONGEST_DRY_RUN_SECONDS);
const rest = z.strictObject({
  container: optionalOr(text, null).describe(
    "the name of the only container to probe; absent: all containers of the pod",
  ),
  outcomes: outcomes.default({}),
  seconds: seconds.gt(0).default(120).describe("the length of the dry run in seconds"),
  strict: z
    .boolean()
    .default(false)
    .describe("true: the dry run follows the documented behaviour where the kubelet differs from it"),
  stopSeconds: seconds.default(0).describe("the seconds that a container takes to end, at most its grace period"),
  backOff: z.boolean().default(true).describe("true: the containers wait in CrashLoopBackOff between restarts"),
  kubeletRestartSeconds: optionalOr(seconds, null).describe(
    "the time in seconds at which the kubelet itself restarts; absent: it does not restart",
  ),
  jitter: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe("the share of its period, from 0 to 1, that each probe worker sleeps after the restart of the kubelet"),
});
/** The pod whose probes are run dry, and the answers that they get: items of `parseOutcomes`, of which every container has its own copy. */
export type ProbesAsk = PodAsk & Readonly<z.output<typeof rest>>;
const ask = z.strictObject({
  ...podAskForm("ProbedPod").shape,
  ...rest.shape,
  outcomes: optional(z.union([script, byType])).describe(
    "the outcomes of the attempts, for probes of all types or by type; absent: always ok",
  ),
});

/** Checks a posted ask and parses it once. Errors: every issue with its path, those of the pod's probes too. */
export function decodeProbesAsk(input: unknown, at = "ask"): Result<ProbesAsk, readonly InputIssue[]> {
  if (input !== undefined && input !== null && !isByType(input)) {
    return err([{ path: at, message: 'expected an object such as {"pod": {...}, "outcomes": "ok,fail*3"}' }]);
  }
  const { pod, ...others } = (input ?? {}) as { readonly pod?: unknown };
  const asked = decodePodAsk({ pod }, at);
  const parsed = decodeForm(rest, others, at);
  if (!asked.ok || !parsed.ok) return err([asked, parsed].flatMap((read) => (read.ok ? [] : read.error)));
  const found = [
    ...unknownProbeFields(pod, joinPath(at, ["pod"])),
    ...issuesOfPod(asked.value.pod, parsed.value.container, at),
  ];
  return found.length > 0 ? err(found) : ok({ ...asked.value, ...parsed.value });
}

function issuesOfPod(pod: Pod | string | null, container: string | null, at: string): readonly InputIssue[] {
  if (pod === null || typeof pod === "string") return [];
  const found = [...probesIssues(pod, joinPath(at, ["pod"]))];
  const names = containersOf(pod).map(({ name }) => name);
  if (container !== null && !names.includes(container)) {
    const message = `the pod has no container \`${container}\`; it has ${names.join(", ")}`;
    found.push({ path: joinPath(at, ["container"]), message });
  }
  return found;
}

export const probes = {
  decides:
    "what a pod's probes do with given results: attempts, states, restarts; and which of their settings cause problems",
  ask: { decode: decodeProbesAsk, schema: { name: "ProbesAsk", form: ask }, pod: "object" },
  decision: probesDecision,
  reasons: PROBES_REASONS,
  facts: null,
  traits: {
    ...PLAIN,
    pods: "nothing",
    needsSnapshot: false,
    whatIf: "not-asked",
    nodePage: "history",
    up: "not-asked",
    collected: null,
  },
} as const satisfies KindSpec;
