import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import { type Pod, podRef } from "../../model/pod.ts";
import type { ProbesAsk } from "../../model/probes-ask.ts";
import type { ProbedContainer, ProbeRun, ProbesDecision, QuirkHit } from "../../model/probes-decision.ts";
import { ok, type Result } from "../../model/result.ts";
import { Reasons } from "../reasons.ts";
import { askedProbes } from "./asked-pod.ts";
import { explain } from "./explain.ts";
import { lint } from "./lint.ts";
import { QUIRKS } from "./quirks.ts";
import { reachOf } from "./reach.ts";
import { attemptsOf } from "./script.ts";
import { type ContainerSetting, settingsOf } from "./settings.ts";
import { timelineOf } from "./timeline.ts";
import type { ContainerTrace, Timeline, TimelineInput } from "./timeline-input.ts";

/** kubernetes 1.36: DefaultTerminationGracePeriodSeconds. */
const DEFAULT_GRACE_SECONDS = 30;
/** Of a container that ends when it is asked to. */
const EXIT_CODE = 0;

/**
 * A dry run of one pod's probes on the answers of the ask, and what is likely to go wrong with their settings. Nothing of
 * the snapshot is read but a pod that the ask names. Refused: no pod, or one that is not there; of a named one probes that
 * no API server takes, or a container that it does not have. kubelet 1.36: prober.manager, prober.worker.
 */
export function decideProbes(asked: Asked<ProbesAsk>): Result<Decided<ProbesDecision>, Refusal> {
  const { ask } = asked;
  const found = askedProbes(asked.snapshot, ask);
  if (!found.ok) return found;
  const pod = found.value;
  const settings = settingsOf(pod).filter(({ name }) => ask.container === null || name === ask.container);
  const graceSeconds = pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  const timeline = timelineOf(inputOf(settings, ask, graceSeconds));
  const decision = decisionOf(pod, ask, settings, graceSeconds, timeline);
  const reasons = new Reasons(asked.explain);
  explain(decision, reasons);
  const isCalm = timeline.containers.every(({ runs }) => runs.length <= 1 && runs.every((r) => r.endedAtMs === null));
  return ok({ decision, verdict: isCalm ? "decided" : "restarts", reasons: reasons.list, needs: [], next: null });
}

const ms = (seconds: number): number => Math.round(seconds * 1000);

function inputOf(settings: readonly ContainerSetting[], ask: ProbesAsk, graceSeconds: number): TimelineInput {
  return {
    containers: settings.map(({ name, sidecar, restartPolicy, probes }) => ({
      name,
      sidecar,
      restartPolicy,
      probes: probes.map((probe) => ({
        type: probe.type,
        timing: probe.timing,
        script: attemptsOf(ask.outcomes[probe.type], probe),
      })),
    })),
    endMs: ms(ask.seconds),
    strict: ask.strict,
    graceSeconds,
    stopMs: ms(ask.stopSeconds),
    exitCode: EXIT_CODE,
    backOff: ask.backOff,
    statusTriggers: true,
    kubeletRestartMs: ask.kubeletRestartSeconds === null ? null : ms(ask.kubeletRestartSeconds),
    jitter: ask.jitter,
  };
}

function decisionOf(
  pod: Pod,
  ask: ProbesAsk,
  settings: readonly ContainerSetting[],
  graceSeconds: number,
  { containers, ready, events, endMs, truncated, quirks }: Timeline,
): ProbesDecision {
  const told = containers.map((trace, i) => containerOf(trace, settings[i] as ContainerSetting, graceSeconds));
  const firsts = told.flatMap(({ firstRestartAtMs }) => firstRestartAtMs ?? []);
  return {
    pod: podRef(pod),
    strict: ask.strict,
    endMs,
    truncated,
    restarts: told.reduce((sum, { restarts }) => sum + restarts, 0),
    firstRestartAtMs: firsts.length === 0 ? null : Math.min(...firsts),
    ready,
    containers: told,
    events,
    quirks: quirks.map((met): QuirkHit => {
      const { what, issues } = QUIRKS.find(({ code }) => code === met.code) as (typeof QUIRKS)[number];
      return { ...met, what, issues };
    }),
    findings: lint(settings, graceSeconds),
  };
}

function containerOf(trace: ContainerTrace, setting: ContainerSetting, graceSeconds: number): ProbedContainer {
  const { name, restarts, runs, started, ready, lanes } = trace;
  return {
    container: name,
    sidecar: setting.sidecar,
    restarts,
    firstRestartAtMs: runs[1]?.startedAtMs ?? null,
    runs,
    started,
    ready,
    probes: setting.probes.map(({ type, handler, timing }, i): ProbeRun => {
      const { attempts = [], results = [], onHold = [] } = lanes[i] ?? {};
      return { type, handler, ...timing, reach: reachOf(type, timing, graceSeconds), attempts, results, onHold };
    }),
  };
}
