import { err, ok, type Result } from "../../base/result.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { containersOf, type Pod, podNamespace, podRef } from "../../model/pod.ts";
import type { ProbeType } from "../../model/probe-spec.ts";
import type { ProbesAsk } from "../../model/probes.ts";
import {
  type OutcomeScript,
  type OutcomeWord,
  type ProbedContainer,
  type ProbeFinding,
  type ProbeFindingCode,
  type ProbeQuirk,
  type ProbeRun,
  type ProbesDecision,
  type ProbeTiming,
  parseOutcomes,
  type QuirkHit,
  type ScriptedOutcome,
} from "../../model/probes-decision.ts";
import { probesIssues } from "../../model/probes-issues.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveArguments, EffectiveConfiguration } from "../../profiles/effective.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { goDurationText } from "../go/strconv.ts";
import { type BackOffLimits, restartBackOff } from "../probes/back-off.ts";
import { containerPort } from "../probes/http-request.ts";
import {
  type ContainerSetting,
  MIN_GRACE_SECONDS,
  type ProbeSetting,
  reachOf,
  settingsOf,
} from "../probes/settings.ts";
import { SimPod } from "../probes/sim-pod.ts";
import type { ContainerTrace, ScriptedAttempt, Timeline, TimelineInput } from "../probes/sim-worker.ts";
import { type AttemptOutcome, QUIRKS } from "../probes/worker-state.ts";
import { Reasons } from "../reasons.ts";

/** A start time up to this is common. */
const DEFAULT_START_MS = 30_000;
const LONG_DELAY_SECONDS = 30;
/** Few programs have certainly started within this time, and none on a busy node. */
const TINY_START_MS = 10_000;
/** An exec probe more often than this is costly, as each attempt starts a process. */
const OFTEN_SECONDS = 5;
const LONG_GRACE_SECONDS = 60;

/** Lists what is likely to go wrong with the settings, the worst first; `graceSeconds` is the pod's. */
function lint(containers: readonly ContainerSetting[], graceSeconds: number): readonly ProbeFinding[] {
  const findings = containers.flatMap((container) => {
    const lint = new ContainerLint(container, graceSeconds);
    for (const probe of container.probes) lint.alone(probe);
    lint.together();
    return lint.findings;
  });
  const rank = (f: ProbeFinding): number => ["error", "warning", "hint"].indexOf(f.level);
  return findings.sort((a, b) => rank(a) - rank(b));
}

class ContainerLint {
  readonly findings: ProbeFinding[] = [];
  readonly #container: ContainerSetting;
  readonly #graceSeconds: number;
  readonly #by: Readonly<Partial<Record<ProbeType, ProbeSetting>>>;
  constructor(container: ContainerSetting, graceSeconds: number) {
    this.#container = container;
    this.#graceSeconds = graceSeconds;
    this.#by = Object.fromEntries(container.probes.map((probe) => [probe.type, probe]));
  }

  /** Reports the faults of one probe by itself. */
  alone(probe: ProbeSetting): void {
    const { type, timing, handler, unknownPort, host } = probe;
    const { failureThreshold, periodSeconds, timeoutSeconds, successThreshold } = timing;
    const restarts = type !== "readiness";
    if (unknownPort !== null) this.#note("unknown-port-name", "error", probe, `${handler}.port`, { port: unknownPort });
    if (timeoutSeconds > periodSeconds) {
      this.#note("timeout-over-period", "warning", probe, "timeoutSeconds", { timeoutSeconds, periodSeconds });
    }
    if (failureThreshold === 1 && restarts) {
      this.#note("one-failure-restarts", "warning", probe, "failureThreshold", { timeoutSeconds });
    } else if (failureThreshold === 1) {
      this.#note("one-failure-unready", "hint", probe, "failureThreshold", { timeoutSeconds });
    }
    if (handler === "exec" && periodSeconds < OFTEN_SECONDS) {
      const perMinute = Math.round(60 / periodSeconds);
      this.#note("exec-often", "hint", probe, "periodSeconds", { periodSeconds, perMinute });
    }
    if (type === "readiness" && successThreshold > 1) {
      this.#note("success-threshold-carries", "hint", probe, "successThreshold", { successThreshold });
    }
    if (host !== "") this.#note("host-outside-pod", "warning", probe, `${handler}.host`, { host });
    if (restarts) this.#grace(probe);
    if (type === "liveness" && this.#container.restartPolicy === "Never") {
      this.#note("never-restarted", "warning", probe, "", {});
    }
  }

  #grace(probe: ProbeSetting): void {
    const own = probe.timing.terminationGracePeriodSeconds;
    const podSeconds = this.#graceSeconds;
    const field = "terminationGracePeriodSeconds";
    if (own !== null && own > podSeconds) this.#note("grace-over-pod", "hint", probe, field, { own, podSeconds });
    if (own !== null && own < MIN_GRACE_SECONDS) {
      this.#note("grace-below-least", "hint", probe, field, { own, least: MIN_GRACE_SECONDS });
    }
    if ((own ?? podSeconds) >= LONG_GRACE_SECONDS) {
      const { slowestEndMs } = reachOf(probe.type, probe.timing, podSeconds);
      this.#note("long-grace", "hint", probe, field, {
        graceSeconds: own ?? podSeconds,
        slowestEndSeconds: (slowestEndMs ?? 0) / 1000,
      });
    }
  }

  /** Reports the faults of the container's probes in combination. */
  together(): void {
    const { startup, liveness, readiness } = this.#by;
    if (liveness !== undefined) this.#liveness(liveness, startup, readiness);
    if (startup === undefined) return;
    const budgetMs = this.#reachOf(startup).soonestFailureMs;
    const readyDelaySeconds = readiness?.timing.initialDelaySeconds ?? 0;
    const liveDelaySeconds = liveness?.timing.initialDelaySeconds ?? 0;
    if (budgetMs < Math.max(TINY_START_MS, readyDelaySeconds * 1000, liveDelaySeconds * 1000)) {
      const numbers = { soonestSeconds: budgetMs / 1000, readyDelaySeconds, liveDelaySeconds };
      this.#note("startup-too-short", "warning", startup, "failureThreshold", numbers);
    }
    for (const probe of [liveness, readiness]) {
      const delaySeconds = probe?.timing.initialDelaySeconds ?? 0;
      if (probe === undefined || delaySeconds === 0) continue;
      this.#note("delay-beside-startup", "hint", probe, "initialDelaySeconds", { delaySeconds });
    }
  }

  #liveness(liveness: ProbeSetting, startup: ProbeSetting | undefined, readiness: ProbeSetting | undefined): void {
    const { soonestFailureMs, slowestFailureMs } = this.#reachOf(liveness);
    const { initialDelaySeconds } = liveness.timing;
    const readyDelayMs = (readiness?.timing.initialDelaySeconds ?? 0) * 1000;
    if (startup === undefined && soonestFailureMs < Math.max(DEFAULT_START_MS, readyDelayMs)) {
      const numbers = { soonestSeconds: soonestFailureMs / 1000, readyDelaySeconds: readyDelayMs / 1000 };
      this.#note("liveness-before-started", "warning", liveness, "initialDelaySeconds", numbers);
    }
    if (startup === undefined && initialDelaySeconds >= LONG_DELAY_SECONDS) {
      this.#note("long-delay", "hint", liveness, "initialDelaySeconds", { delaySeconds: initialDelaySeconds });
    }
    if (readiness === undefined) return;
    const unreadyMs = this.#reachOf(readiness).slowestFailureMs;
    const numbers = { restartSeconds: slowestFailureMs / 1000, unreadySeconds: unreadyMs / 1000 };
    if (liveness.target === readiness.target) this.#note("same-as-readiness", "warning", liveness, "", numbers);
    else if (slowestFailureMs <= unreadyMs) {
      this.#note("liveness-not-after-readiness", "warning", liveness, "failureThreshold", numbers);
    }
  }

  #reachOf({ type, timing }: ProbeSetting) {
    return reachOf(type, timing, this.#graceSeconds);
  }
  #note(
    code: ProbeFindingCode,
    level: ProbeFinding["level"],
    { path, type }: ProbeSetting,
    field: string,
    numbers: ProbeFinding["numbers"],
  ): void {
    const at = field === "" ? path : `${path}.${field}`;
    this.findings.push({ code, level, path: at, container: this.#container.name, type, numbers });
  }
}

/** The outcome for each word: the kubelet's text if it is always the same, else a text that names what was scripted. */
const OUTCOME: Readonly<Record<Exclude<OutcomeWord, "timeout">, AttemptOutcome>> = {
  ok: { result: "success", output: "" },
  warn: { result: "warning", output: "" },
  fail: { result: "failure", output: "" },
  error: { error: "the container could not be asked" },
  hang: {
    error: "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
    state: "failure",
  },
};
/** The outcome for a body that ends too soon. Go: io.ErrUnexpectedEOF. */
const BROKEN_OFF: AttemptOutcome = { error: "unexpected EOF", state: "failure" };
const ALWAYS_OK: OutcomeScript = [{ word: "ok", tookMs: null }];

type ScriptedProbe = Pick<ProbeSetting, "handler" | "timing" | "unknownPort">;

/**
 * The attempts of one probe, from the checked items of an ask; without any, `ok` for ever. An attempt longer than the
 * timeout is a timeout. A port without a number cannot be reached. Only HTTP has a body that may hang: for other
 * handlers a hang is a timeout.
 */
function attemptsOf(
  items: readonly string[] | undefined,
  probe: ScriptedProbe,
  behaviour: Behaviour,
): readonly ScriptedAttempt[] {
  const { unknownPort } = probe;
  const port = unknownPort === null ? null : containerPort(unknownPort, [], behaviour);
  if (port?.ok === false) return [{ word: "error", outcome: { error: port.error }, tookMs: 0 }];
  const script = items === undefined ? undefined : parseOutcomes(items);
  const given = script?.ok === true && script.value.length > 0 ? script.value : ALWAYS_OK;
  const known = new Map<ScriptedOutcome, ScriptedAttempt>();
  return given.map((scripted) => {
    const made = known.get(scripted) ?? attemptOf(scripted, probe);
    known.set(scripted, made);
    return made;
  });
}

function attemptOf({ word, tookMs }: ScriptedOutcome, { handler, timing }: ScriptedProbe): ScriptedAttempt {
  const timeoutMs = timing.timeoutSeconds * 1000;
  const isHang = word === "hang" && handler === "httpGet";
  const isTimeout = word === "timeout" || (word === "hang" && !isHang);
  const took = tookMs ?? (isHang || isTimeout ? timeoutMs : 0);
  if (isHang && took < timeoutMs) return { word, outcome: BROKEN_OFF, tookMs: took };
  if (isHang) return { word, outcome: OUTCOME.hang, tookMs: timeoutMs };
  if (isTimeout) return { word: "timeout", outcome: timedOut(handler, timing), tookMs: Math.min(took, timeoutMs) };
  if (took < timeoutMs) return { word, outcome: OUTCOME[word as keyof typeof OUTCOME], tookMs: took };
  return { word: "timeout", outcome: timedOut(handler, timing), tookMs: timeoutMs };
}

/**
 * The outcome of a timeout; most handlers' messages name the target, which a dry run does not know. kubelet 1.36:
 * pkg/probe/grpc.
 */
function timedOut(handler: ProbeSetting["handler"], { timeoutSeconds }: ProbeTiming): AttemptOutcome {
  const within = goDurationText(BigInt(timeoutSeconds) * 1_000_000_000n);
  const output = handler === "grpc" ? `timeout: health rpc did not complete within ${within}` : "no answer in time";
  return { result: "failure", output };
}

/** kubernetes 1.36: DefaultTerminationGracePeriodSeconds. */
const DEFAULT_GRACE_SECONDS = 30;
const NO_BACK_OFF: BackOffLimits = { firstMs: 0, longestMs: 0 };
/** The exit code of a container that stops when asked. */
const EXIT_CODE = 0;

/**
 * A dry run of one pod's probes with the answers in the ask, and what is likely to go wrong with their settings. The
 * snapshot supplies a pod named in the ask, and the restart back-off. Refused: no pod, or an unknown one; for a named
 * pod also probes that no API server accepts, or an unknown container. kubelet 1.36: prober.manager, prober.worker.
 */
export function decideProbes(asked: EffectiveArguments<ProbesAsk>): Result<DecidedOf<"probes">, Refusal> {
  const { ask } = asked;
  const config = asked.snapshot.kubeletConfiguration;
  const found = askedProbes(asked.snapshot, ask);
  if (!found.ok) return found;
  const pod = found.value;
  const settings = settingsOf(pod).filter(({ name }) => ask.container === null || name === ask.container);
  const graceSeconds = pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  const timeline = timelineOf(inputOf(settings, ask, graceSeconds, config));
  const decision = decisionOf(pod, ask, settings, graceSeconds, timeline);
  const reasons = new Reasons<ReasonCode<"probes">>(asked.explain);
  explain(decision, reasons);
  const isCalm = timeline.containers.every(({ runs }) => runs.length <= 1 && runs.every((r) => r.endedAtMs === null));
  return ok({ decision, verdict: isCalm ? "decided" : "restarts", reasons: reasons.list, needs: [], next: null });
}

const ms = (seconds: number): number => Math.round(seconds * 1000);

function inputOf(
  settings: readonly ContainerSetting[],
  ask: ProbesAsk,
  graceSeconds: number,
  { profile, featureGates, crashLoopBackOff }: EffectiveConfiguration,
): TimelineInput {
  const longest = crashLoopBackOff.maxContainerRestartPeriod?.millis;
  return {
    containers: settings.map(({ name, sidecar, restartPolicy, probes }) => ({
      name,
      sidecar,
      restartPolicy,
      probes: probes.map((probe) => ({
        type: probe.type,
        timing: probe.timing,
        script: attemptsOf(ask.outcomes[probe.type], probe, profile.behaviour),
      })),
    })),
    endMs: ms(ask.seconds),
    strict: ask.strict,
    graceSeconds,
    stopMs: ms(ask.stopSeconds),
    exitCode: EXIT_CODE,
    backOff: ask.backOff ? restartBackOff(profile, featureGates, longest) : NO_BACK_OFF,
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
  const outcomes = containers.map((trace, i) => containerOf(trace, settings[i] as ContainerSetting, graceSeconds));
  const firsts = outcomes.flatMap(({ firstRestartAtMs }) => firstRestartAtMs ?? []);
  return {
    pod: podRef(pod),
    strict: ask.strict,
    endMs,
    truncated,
    restarts: outcomes.reduce((sum, { restarts }) => sum + restarts, 0),
    firstRestartAtMs: firsts.length === 0 ? null : Math.min(...firsts),
    ready,
    containers: outcomes,
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

/**
 * Simulates the probes of one pod with scripted answers: attempts, results, restarts, and when it was ready. It ends
 * early after 20,000 attempts (`truncated`). The simulation is deterministic.
 */
export const timelineOf = (input: TimelineInput): Timeline => new SimPod(input).run();

/** The pod of the ask. A posted pod has been checked; a named one is checked here. */
function askedProbes({ pods }: Snapshot, { pod: asked, container }: ProbesAsk): Result<Pod, Refusal> {
  if (asked === null) {
    const message = "whose probes are to be run dry? post the pod, or name one of the snapshot";
    return err({ code: "needs_input", message, needs: ["ask.pod"] });
  }
  if (typeof asked !== "string") return ok(asked);
  const at = pods?.findIndex((p) => `${podNamespace(p)}/${p.metadata.name}` === asked) ?? -1;
  const pod = pods?.[at];
  if (pod === undefined) {
    return err({ code: "no_such_pod", message: `the snapshot has no pod \`${asked}\``, needs: ["pods"] });
  }
  const [issue] = probesIssues(pod, `pods[${at}]`);
  if (issue !== undefined) return err({ code: "invalid_state", message: `${issue.path}: ${issue.message}`, needs: [] });
  const names = containersOf(pod).map(({ name }) => name);
  if (container === null || names.includes(container)) return ok(pod);
  const message = `ask.container: \`${asked}\` has no container \`${container}\`; it has ${names.join(", ")}`;
  return err({ code: "invalid_state", message, needs: [] });
}

/** Explains when each container is started and ready, how late a failure is noticed, and which quirks had an effect. */
function explain(decision: ProbesDecision, reasons: Reasons<ReasonCode<"probes">>): void {
  for (const container of decision.containers) explainContainer(container, reasons);
  for (const { code, container, type, times } of decision.quirks) {
    reasons.add(QUIRK_REASON[code], container, type, { times, strict: decision.strict });
  }
}

const QUIRK_REASON: Readonly<Record<ProbeQuirk, ReasonCode<"probes">>> = {
  "sleep-ignores-stop": "quirk_sleep_ignores_stop",
  "counters-carry-over": "quirk_counters_carry_over",
  "hang-discarded": "quirk_hang_discarded",
  "error-discarded": "quirk_error_discarded",
  "ready-kept-on-restart": "quirk_ready_kept_on_restart",
};

function explainContainer({ container, probes, runs }: ProbedContainer, reasons: Reasons<ReasonCode<"probes">>): void {
  const has = (type: string): boolean => probes.some((probe) => probe.type === type);
  if (!has("startup")) reasons.add("started_at_once", container, "started");
  if (!has("readiness")) reasons.add("ready_once_started", container, "ready");
  for (const { type, failureThreshold, periodSeconds, timeoutSeconds, reach } of probes) {
    const { slowestFailureMs } = reach;
    reasons.add("slowest_detection", container, type, {
      slowestFailureMs,
      failureThreshold,
      periodSeconds,
      timeoutSeconds,
    });
  }
  for (const { id, endedBy, endedAtMs } of runs) {
    if (endedBy !== null) reasons.add("ended_by_probe", container, "runs", { id, endedBy, endedAtMs: endedAtMs ?? "" });
  }
}
