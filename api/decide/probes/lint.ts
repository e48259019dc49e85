import type { ProbeType } from "../../model/probe.ts";
import type { ProbeFinding, ProbeFindingCode } from "../../model/probes-decision.ts";
import { LEAST_GRACE_SECONDS, reachOf } from "./reach.ts";
import type { ContainerSetting, ProbeSetting } from "./settings.ts";

/** A container that is slower to start than this is nothing unusual. */
const USUAL_START_MS = 30_000;
const LONG_DELAY_SECONDS = 30;
/** Few programs are sure to have started by then, and on a busy node none. */
const TINY_START_MS = 10_000;
/** A process in the container each time. */
const OFTEN_SECONDS = 5;
const LONG_GRACE_SECONDS = 60;

/** What of the settings is likely to go wrong, the worst first; `graceSeconds` is the pod's. */
export function lint(containers: readonly ContainerSetting[], graceSeconds: number): readonly ProbeFinding[] {
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

  /** What one probe says by itself. */
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
    if (own !== null && own < LEAST_GRACE_SECONDS) {
      this.#note("grace-below-least", "hint", probe, field, { own, least: LEAST_GRACE_SECONDS });
    }
    if ((own ?? podSeconds) >= LONG_GRACE_SECONDS) {
      const { slowestEndMs } = reachOf(probe.type, probe.timing, podSeconds);
      this.#note("long-grace", "hint", probe, field, {
        graceSeconds: own ?? podSeconds,
        slowestEndSeconds: (slowestEndMs ?? 0) / 1000,
      });
    }
  }

  /** What the probes of the container say beside each other. */
  together(): void {
    const { startup, liveness, readiness } = this.#by;
    if (liveness !== undefined) this.#liveness(liveness, startup, readiness);
    if (startup === undefined) return;
    const budgetMs = this.#reach(startup).soonestFailureMs;
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
    const { soonestFailureMs, slowestFailureMs } = this.#reach(liveness);
    const { initialDelaySeconds } = liveness.timing;
    const readyDelayMs = (readiness?.timing.initialDelaySeconds ?? 0) * 1000;
    if (startup === undefined && soonestFailureMs < Math.max(USUAL_START_MS, readyDelayMs)) {
      const numbers = { soonestSeconds: soonestFailureMs / 1000, readyDelaySeconds: readyDelayMs / 1000 };
      this.#note("liveness-before-started", "warning", liveness, "initialDelaySeconds", numbers);
    }
    if (startup === undefined && initialDelaySeconds >= LONG_DELAY_SECONDS) {
      this.#note("long-delay", "hint", liveness, "initialDelaySeconds", { delaySeconds: initialDelaySeconds });
    }
    if (readiness === undefined) return;
    const unreadyMs = this.#reach(readiness).slowestFailureMs;
    const numbers = { restartSeconds: slowestFailureMs / 1000, unreadySeconds: unreadyMs / 1000 };
    if (liveness.target === readiness.target) this.#note("same-as-readiness", "warning", liveness, "", numbers);
    else if (slowestFailureMs <= unreadyMs) {
      this.#note("liveness-not-after-readiness", "warning", liveness, "failureThreshold", numbers);
    }
  }

  #reach({ type, timing }: ProbeSetting) {
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
