import { type HandlerKind, handlerKind } from "../../../api/decide/probes/plan.ts";
import type { AttemptOutcome, PodForProbe, Worker, WorkerSpec } from "../../../api/decide/probes/worker-state.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { ProbeFacts, ProbeName } from "../../status/probe-row.ts";
import type { ProbeRequest } from "./attempt.ts";
import { type AttemptKind, attemptKind } from "./history-entry.ts";
import type { ProbeTime, TimerItem } from "./probe-time.ts";
import { outputOf, type ProbedContainer, type ProbedPod } from "./probed.ts";

/** What is recorded about an attempt that ended. */
export interface RecordedOutcome {
  readonly kind: AttemptKind;
  /** True: this is the first attempt of its container. */
  readonly isFirst: boolean;
  /** The run of other outcomes that the attempt ended; null: none. */
  readonly ran: { readonly outcome: AttemptKind; readonly times: number } | null;
}

/** `profile`: the kubelet version that is reimplemented. */
interface ProbeWorkerSpec extends WorkerSpec {
  readonly profile: Profile;
}

/** One probe of one container while its pod exists: the reducer's state, and the facts shown to people. */
export class ProbeWorker implements TimerItem {
  dueMs = 0;
  at = -1;
  readonly spec: ProbeWorkerSpec;
  readonly name: ProbeName;
  readonly handler: HandlerKind;
  pod: ProbedPod;
  container: ProbedContainer;
  /** Null: the probe has not begun, because of its spread. */
  state: Worker | null = null;
  /** The worker's number among the probes with its period; null: it has none. */
  phase: number | null = null;
  /** Whether the pod was being deleted when the worker was created, as in the kubelet. */
  readonly isDeleting: boolean;
  /** Number of the attempt that is queued or running; the outcome of an earlier attempt is ignored. */
  attempt = 0;
  /** Cancels the attempt while it is queued. */
  unqueue: (() => void) | null = null;
  /** The last report to the guard: attempts fail, or the failure threshold is reached. */
  reported: "failing" | "failed" | null = null;
  /** When an exec last waited in the queue longer than its period, on the probes' clock. */
  overdueAtMs = Number.NEGATIVE_INFINITY;
  /** The last container whose first attempt has ended. */
  #first: string | null = null;
  #asked: ProbeRequest | null = null;
  #started: { readonly id: string; readonly wallMs: number; readonly atMs: number } | null = null;
  #attempts = 0;
  #failures = 0;
  #run: { readonly outcome: AttemptKind; times: number } | null = null;
  #lastAtMs: number | null = null;
  #lastOutput = "";
  #sinceMs: number | null = null;
  #seconds: number | null = null;

  constructor(spec: ProbeWorkerSpec, pod: ProbedPod, container: ProbedContainer) {
    this.spec = spec;
    this.pod = pod;
    this.container = container;
    this.handler = handlerKind(spec.probe.handler);
    this.isDeleting = pod.deletionAtMs !== null;
    const { uid: podUid, namespace, name } = pod;
    this.name = { podUid, namespace, pod: name, container: container.name, type: spec.type };
  }

  get isEnded(): boolean {
    return this.state?.at === "ended";
  }
  get periodMs(): number {
    return this.spec.probe.periodSeconds * 1000;
  }
  get lastOutput(): string {
    return this.#lastOutput;
  }
  /** The average duration of the attempts, recent ones weighted more; null: there was none. */
  get seconds(): number | null {
    return this.#seconds;
  }

  /**
   * Builds the probe request for the container. It returns the same object while nothing in it changes, so that values derived
   * from it can be cached.
   */
  asked(containerId: string): ProbeRequest {
    const { pod, container, spec } = this;
    const { podIP } = pod;
    const { ports, env } = container;
    const last = this.#asked?.target;
    if (this.#asked !== null && last?.podIP === podIP && last.containerId === containerId && last.ports === ports)
      if (last.env === env) return this.#asked;
    const { profile, probe } = spec;
    const { handler, timeoutSeconds } = probe;
    const target = { podIP, ports, env, containerId, profile };
    this.#asked = { handler, timeoutMs: timeoutSeconds * 1000, target };
    return this.#asked;
  }

  seen(time: ProbeTime, started: boolean): PodForProbe {
    const { id, state, startedAtMs, willRestart } = this.container;
    const ended = this.pod.phase === "Failed" || this.pod.phase === "Succeeded";
    if (id === null) return { ended, deleting: this.isDeleting, container: null };
    if (startedAtMs !== null && (this.#started?.id !== id || this.#started.wallMs !== startedAtMs))
      this.#started = { id, wallMs: startedAtMs, atMs: time.fromWall(startedAtMs) };
    const atMs = startedAtMs === null ? null : (this.#started?.atMs ?? null);
    return { ended, deleting: this.isDeleting, container: { id, state, startedAtMs: atMs, started, willRestart } };
  }

  /** Records an attempt that ended at the wall-clock time `wallMs`. */
  note(outcome: AttemptOutcome, wallMs: number, seconds: number): RecordedOutcome {
    const kind = attemptKind(outcome, seconds, this.spec.probe.timeoutSeconds);
    const containerId = this.state?.containerId ?? null;
    const isFirst = this.#first !== containerId;
    this.#first = containerId;
    this.#attempts++;
    this.#failures = kind === "failure" ? this.#failures + 1 : kind === "success" ? 0 : this.#failures;
    this.#lastAtMs = wallMs;
    this.#lastOutput = outputOf(outcome);
    this.#seconds = this.#seconds === null ? seconds : this.#seconds * 0.8 + seconds * 0.2;
    const before = this.#run;
    if (before?.outcome === kind) {
      before.times++;
      return { kind, isFirst, ran: null };
    }
    this.#run = { outcome: kind, times: 1 };
    return { kind, isFirst, ran: before };
  }
  /** Sets the wall-clock time since which the stored result is unchanged; null: no result is stored any more. */
  resultSince(wallMs: number | null): void {
    this.#sinceMs = wallMs;
  }

  facts(time: Pick<ProbeTime, "toWall">): ProbeFacts {
    const { state, name, handler, spec } = this;
    return {
      ...name,
      handler,
      periodSeconds: spec.probe.periodSeconds,
      timeoutSeconds: spec.probe.timeoutSeconds,
      result: state?.stored ?? null,
      sinceMs: this.#sinceMs,
      activity: this.#activity(),
      attempts: this.#attempts,
      failures: this.#failures,
      seconds: this.#seconds,
      output: this.#lastOutput,
      lastAtMs: this.#lastAtMs,
      nextAtMs: this.at < 0 ? null : time.toWall(this.dueMs),
    };
  }
  #activity(): ProbeFacts["activity"] {
    const { state } = this;
    if (this.unqueue !== null) return "queued";
    if (state === null || state.at === "sleeping") return "spread";
    if (state.at === "probing") return "probing";
    if (this.reported === "failed" && !state.onHold) return "held";
    return state.onHold ? "done" : "waiting";
  }
}
