import type { ObservedEvent } from "../../model/observed.ts";
import { PROBE_TYPES, type ProbeType } from "../../model/probe-spec.ts";
import type { Change, Finding, PodExplanationDecision } from "../../model/why.ts";
import { ask, nodeAlone } from "./node-at.ts";
import type { EventOrOutcome, SeenOutcome } from "./outcomes.ts";
import {
  conditionOf,
  containerOf,
  containersNow,
  eventsOf,
  finding,
  missing,
  type PodContainer,
  type WhyContext,
  wordOfCondition,
  wordOfEvent,
} from "./why-context.ts";

/** kubelet 1.36: prober.probe, `Liveness probe failed: ...` or `... errored: ...`. */
const typeOf = ({ message }: ObservedEvent): ProbeType | null =>
  PROBE_TYPES.find((type) => message.toLowerCase().startsWith(`${type} probe `)) ?? null;
/** kubelet 1.36: computePodActions. */
const KILLED = /failed (startup|liveness) probe/;
const isTimeout = (message: string): boolean =>
  /timed out|deadline exceeded|Timeout exceeded|Client\.Timeout/.test(message);
const countOf = (events: readonly ObservedEvent[]): number => events.reduce((sum, { count }) => sum + count, 0);

/** Findings about a container's probes: restarted by them, not started, not ready. */
export function probingOf(of: WhyContext): readonly Finding[] {
  const { pod, events } = of.subject;
  const phase = pod?.status?.phase;
  const named = new Set(events.flatMap((event) => containerOf(event) ?? []));
  const all =
    pod === null ? [...named].map((name) => ({ name, isInit: false, spec: null, status: null })) : containersNow(of);
  const found = all.flatMap((one) => [
    ...restartedBy(of, one),
    ...(phase === "Running" ? [...notStarted(of, one), ...notReady(of, one)] : []),
  ]);
  return found.length > 0 || phase !== "Running" ? found : gated(of);
}

const ofContainer = (
  of: WhyContext,
  { name }: PodContainer,
  ...reasons: readonly string[]
): readonly EventOrOutcome[] =>
  eventsOf(of, ...reasons).filter(
    (event) => containerOf(event) === name || event.message.includes(`ontainer ${name} `),
  );
const unhealthy = (of: WhyContext, one: PodContainer, type: ProbeType): readonly ObservedEvent[] =>
  ofContainer(of, one, "Unhealthy").filter((event) => typeOf(event) === type);

function restartedBy(of: WhyContext, one: PodContainer): readonly Finding[] {
  const kills = ofContainer(of, one, "Killing").filter(({ message }) => KILLED.test(message));
  const last = kills.at(-1);
  if (last === undefined) return [];
  const type = KILLED.exec(last.message)?.[1] as ProbeType;
  const failed = unhealthy(of, one, type);
  const asked = of.decides ? askProbes(of, one, type, failed) : NOTHING;
  const seen = kills.reduce((sum, { outcome }) => sum + failuresIn(outcome), 0);
  const numbers = { type, failures: countOf(failed) || seen, restarts: countOf(kills) };
  const words = [...failed.slice(-2), last].map(wordOfEvent);
  return [
    finding("restarted-by-probe", { since: kills[0]?.first ?? null, container: one.name, words, numbers, ...asked }),
  ];
}

const failuresIn = (seen: SeenOutcome | undefined): number =>
  seen?.outcome.kind === "probes" ? (seen.outcome.failures ?? 0) : 0;

function notStarted(of: WhyContext, one: PodContainer): readonly Finding[] {
  const { started, state } = one.status ?? {};
  if (one.spec?.startupProbe === undefined || started !== false || state?.running === undefined) return [];
  const failed = unhealthy(of, one, "startup");
  if (failed.length === 0) return [];
  const asked = of.decides ? askProbes(of, one, "startup", failed) : NOTHING;
  const numbers = { type: "startup" as const, failures: countOf(failed), restarts: one.status?.restartCount ?? 0 };
  const words = failed.slice(-2).map(wordOfEvent);
  return [
    finding("startup-failing", { since: failed[0]?.first ?? null, container: one.name, words, numbers, ...asked }),
  ];
}

function notReady(of: WhyContext, one: PodContainer): readonly Finding[] {
  const { ready, state, restartCount = 0 } = one.status ?? {};
  if (one.spec?.readinessProbe === undefined || ready !== false || state?.running === undefined) return [];
  const failed = unhealthy(of, one, "readiness");
  const condition = conditionOf(of, "ContainersReady");
  const asked = of.decides && failed.length > 0 ? askProbes(of, one, "readiness", failed) : NOTHING;
  return [
    finding("not-ready", {
      since: failed[0]?.first ?? condition?.lastTransitionTime ?? null,
      container: one.name,
      words:
        failed.length > 0
          ? failed.slice(-2).map(wordOfEvent)
          : condition === undefined
            ? []
            : [wordOfCondition(condition)],
      numbers: { type: "readiness", failures: countOf(failed), restarts: restartCount, gates: [] },
      ...asked,
      missing: of.subject.events.length > 0 ? [] : [missing(of, "events", "what the probe was answered")],
    }),
  ];
}

/** Findings about readiness gates: conditions that something other than the kubelet sets. */
function gated(of: WhyContext): readonly Finding[] {
  const { pod } = of.subject;
  const ready = conditionOf(of, "Ready");
  const gates = (pod?.spec?.readinessGates ?? [])
    .map(({ conditionType }) => conditionType)
    .filter((type) => conditionOf(of, type)?.status !== "True");
  if (gates.length === 0 || ready?.status !== "False") return [];
  const words = [wordOfCondition(ready)];
  return [
    finding("not-ready", {
      since: ready.lastTransitionTime ?? null,
      words,
      numbers: { type: null, failures: 0, restarts: 0, gates },
    }),
  ];
}

interface ProbesAnswer {
  readonly decisions: readonly PodExplanationDecision[];
  readonly whatWouldChange: readonly Change[];
}
const NOTHING: ProbesAnswer = { decisions: [], whatWouldChange: [] };
/** Seconds to simulate: long enough for any probe that a person waits for. */
const SECONDS = 3600;

/** Simulates the probe with all attempts failing, and finds settings that are likely wrong. */
function askProbes(of: WhyContext, one: PodContainer, type: ProbeType, failed: readonly ObservedEvent[]): ProbesAnswer {
  const { held, node } = of.subject;
  if (held === null) return NOTHING;
  const slow = failed.some(({ message }) => isTimeout(message));
  const asking = {
    pod: held.value,
    container: one.name,
    outcomes: { [type]: slow ? "timeout" : "fail" },
    seconds: SECONDS,
    backOff: false,
  };
  const asked = ask("probes", nodeAlone(of.evidence, node), asking);
  if (!asked.ok) return NOTHING;
  const { decided, head } = asked.value;
  const container = decided.decision.containers.find(({ container }) => container === one.name);
  if (container === undefined) return NOTHING;
  const { firstRestartAtMs } = container;
  const probes = container.probes.map(({ attempts: _, results: __, onHold: ___, ...probe }) => probe);
  const findings = decided.decision.findings.filter((found) => found.container === one.name);
  const excerpt = { container: one.name, firstRestartAtMs, probes, findings };
  // a failed readiness probe does not terminate the container
  const agrees = type === "readiness" ? null : firstRestartAtMs !== null;
  const decision: PodExplanationDecision = { kind: "probes", ...head, agrees, differs: null, excerpt };
  return { decisions: [decision], whatWouldChange: changesOf(type, slow, excerpt) };
}

type ProbesExcerpt = Extract<PodExplanationDecision, { readonly kind: "probes" }>["excerpt"];

function changesOf(type: ProbeType, slow: boolean, { container, probes, findings }: ProbesExcerpt): readonly Change[] {
  const probe = probes.find((one) => one.type === type);
  if (probe === undefined) return [];
  const { timeoutSeconds, failureThreshold, periodSeconds, reach } = probe;
  const numbers = { container, type, timeoutSeconds, failureThreshold, periodSeconds };
  const timeout: readonly Change[] = slow ? [{ code: "probe_timeout", numbers }] : [];
  const threshold: readonly Change[] =
    type === "readiness"
      ? []
      : [{ code: "probe_threshold", numbers: { ...numbers, withinMs: reach.soonestFailureMs } }];
  const settings = findings
    .filter((found) => found.type === type && found.level !== "hint")
    .map(({ code, path, numbers: of }): Change => ({ code: "probe_setting", numbers: { code, path, ...of } }));
  return [...timeout, ...threshold, ...settings];
}
