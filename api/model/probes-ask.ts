import * as z from "zod";
import { decodePodAsk, type PodAsk } from "./ask.ts";
import { issuesOf } from "./decode.ts";
import { optional, text } from "./fields.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { withoutNulls } from "./nulls.ts";
import { containersOf, type Pod } from "./pod.ts";
import { PROBE_TYPES, type ProbeType } from "./probe.ts";
import { probesIssues } from "./probes-issues.ts";
import { parseOutcomes } from "./probes-outcomes.ts";
import { err, ok, type Result } from "./result.ts";
import { unknownProbeFields } from "./unknown-probe-fields.ts";

/** Whose probes are run dry, on what answers. */
export interface ProbesAsk extends PodAsk {
  /** Only this one of the pod; null: all. */
  readonly container: string | null;
  /** What the probes of each type are answered, as items of `parseOutcomes`; absent: always `ok`. Every container has its own copy. */
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
