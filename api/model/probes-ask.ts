import * as z from "zod";
import { decodePodAsk, type PodAsk } from "./ask.ts";
import { issuesOf } from "./decode.ts";
import { optional, text } from "./fields.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { nearName } from "./near-name.ts";
import { withoutNulls } from "./nulls.ts";
import { containersOf, type Pod } from "./pod.ts";
import { PROBE_TYPES, type ProbeType, podProbe } from "./probe.ts";
import { parseOutcomes } from "./probes-decision.ts";
import { PROBE_FIELD, probesIssues } from "./probes-issues.ts";
import { err, ok, type Result } from "./result.ts";

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
/** Nobody misspells one that is so long. */
const LONGEST_NAME = 64;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Fields of a posted pod's probes that v1.Probe does not have, with the name that was perhaps meant: a misspelt field is a
 * default that nobody wanted, and a strict API server refuses it.
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

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** The pod whose probes are run dry, and the answers that they get. */
export interface ProbesAsk extends PodAsk {
  /** Only this one of the pod; null: all. */
  readonly container: string | null;
  /**
   * The answers to the probes of each type, as items of `parseOutcomes`; absent: always `ok`. Every container has its own copy.
   */
  readonly outcomes: Readonly<Partial<Record<ProbeType, readonly string[]>>>;
  readonly seconds: number;
  /** The documented behaviour in the place of the kubelet's quirks. */
  readonly strict: boolean;
  /** How long a container takes to end; one that is still there when its grace is over is killed then. */
  readonly stopSeconds: number;
  /** CrashLoopBackOff between restarts. */
  readonly backOff: boolean;
  /** When the kubelet itself restarts; null: it does not. */
  readonly kubeletRestartSeconds: number | null;
  /** 0 to 1: the share of its period that each worker sleeps after a restart of the kubelet. */
  readonly jitter: number;
}
export const PROBES_DEFAULTS = { seconds: 120, strict: false, stopSeconds: 0, backOff: true, jitter: 0 } as const;
export const LONGEST_DRY_RUN_SECONDS = 86_400;

const script = z
  .union([z.string().max(LIMITS.textLength), z.array(text).max(10_000)])
  .transform((given, ctx): readonly string[] => {
    const items = (typeof given === "string" ? given.split(",") : given).map((item) => item.trim());
    const parsed = parseOutcomes(items);
    if (parsed.ok) return items;
    ctx.addIssue({ code: "custom", message: parsed.error });
    return z.NEVER;
  });
const byType = z.strictObject({ startup: optional(script), liveness: optional(script), readiness: optional(script) });
const isByType = (v: unknown): boolean => typeof v === "object" && v !== null && !Array.isArray(v);
/** A list alone is for the probes of every type. */
const outcomes = z.unknown().transform((given, ctx): ProbesAsk["outcomes"] => {
  const parsed = isByType(given) ? byType.safeParse(given) : script.safeParse(given);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) ctx.addIssue({ code: "custom", path: [...path], message });
    return z.NEVER;
  }
  if (isByType(given)) return parsed.data as ProbesAsk["outcomes"];
  return Object.fromEntries(PROBE_TYPES.map((type) => [type, parsed.data as readonly string[]]));
});
const seconds = z.number().min(0).max(LONGEST_DRY_RUN_SECONDS);
const rest = z.strictObject({
  container: text.nullable().default(null),
  outcomes: outcomes.default({}),
  seconds: seconds.gt(0).default(PROBES_DEFAULTS.seconds),
  strict: z.boolean().default(PROBES_DEFAULTS.strict),
  stopSeconds: seconds.default(PROBES_DEFAULTS.stopSeconds),
  backOff: z.boolean().default(PROBES_DEFAULTS.backOff),
  kubeletRestartSeconds: seconds.nullable().default(null),
  jitter: z.number().min(0).max(1).default(PROBES_DEFAULTS.jitter),
});

/** Checks a posted ask and parses it once. Errors: every issue with its path, those of the pod's probes too. */
export function decodeProbesAsk(input: unknown, at = "ask"): Result<ProbesAsk, readonly InputIssue[]> {
  if (input !== undefined && input !== null && !isByType(input)) {
    return err([{ path: at, message: 'expected an object such as {"pod": {...}, "outcomes": "ok,fail*3"}' }]);
  }
  const { pod, ...others } = (input ?? {}) as { readonly pod?: unknown };
  const asked = decodePodAsk({ pod }, at);
  const parsed = rest.safeParse(withoutNulls(others));
  const issues = [...(asked.ok ? [] : asked.error), ...(parsed.success ? [] : issuesOf(parsed.error, others, at))];
  if (!asked.ok || !parsed.success) return err(issues);
  const found = [
    ...unknownProbeFields(pod, joinPath(at, ["pod"])),
    ...issuesOfPod(asked.value.pod, parsed.data.container, at),
  ];
  return found.length > 0 ? err(found) : ok({ ...asked.value, ...parsed.data });
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
