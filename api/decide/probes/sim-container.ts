import type { ProbeType } from "../../model/probe.ts";
import type { ContainerRun, Span } from "../../model/probes-decision.ts";
import { RestartBackOff } from "./restart-back-off.ts";
import { Lane, type LanePod } from "./sim-lane.ts";
import type { ContainerTrace, TimelineContainer } from "./timeline-input.ts";
import type { ContainerSeen, PodSeen } from "./worker-state.ts";

type Open<T> = { -readonly [K in keyof T]: T[K] };
/** The moments at which something began and ceased to hold. */
export class Spans {
  readonly list: Open<Span>[] = [];
  note(holds: boolean, atMs: number): void {
    const last = this.list.at(-1);
    const isOpen = last !== undefined && last.toMs === null;
    if (holds === isOpen) return;
    if (holds) this.list.push({ fromMs: atMs, toMs: null });
    else if (last !== undefined) last.toMs = atMs;
  }
}

/** One container of the dry run: its instances, its status as the kubelet has it, its probes. */
export class SimContainer implements ContainerTrace {
  readonly spec: TimelineContainer;
  readonly runs: Open<ContainerRun>[] = [];
  readonly lanes: readonly Lane[];
  readonly backOff = new RestartBackOff();
  state: ContainerSeen["state"] = "waiting";
  /** It is being ended. */
  isStopping = false;
  /** Of the status. */
  isStarted = false;
  isReady = false;
  willRestart = true;
  readonly #started = new Spans();
  readonly #ready = new Spans();
  #seen: PodSeen = NOT_THERE;

  constructor(spec: TimelineContainer, pod: Omit<LanePod, "seen">, strict: boolean) {
    this.spec = spec;
    const here: LanePod = {
      clock: pod.clock,
      seen: () => this.#seen,
      told: (lane, effect) => pod.told(lane, effect),
      attempted: () => pod.attempted(),
    };
    this.lanes = spec.probes.map((probe) => new Lane(here, probe, spec.sidecar, strict));
  }
  get name(): string {
    return this.spec.name;
  }
  get restarts(): number {
    return Math.max(0, this.runs.length - 1);
  }
  get started(): readonly Span[] {
    return this.#started.list;
  }
  get ready(): readonly Span[] {
    return this.#ready.list;
  }
  get run(): Open<ContainerRun> | undefined {
    return this.runs.at(-1);
  }
  lane(type: ProbeType): Lane | undefined {
    return this.lanes.find((lane) => lane.type === type);
  }
  storedBy(type: ProbeType): string | null {
    return this.run === undefined ? null : (this.lane(type)?.storedFor(this.run.id) ?? null);
  }

  begin(nowMs: number): void {
    this.runs.push({ id: `c${this.runs.length}`, startedAtMs: nowMs, endedAtMs: null, endedBy: null });
    this.state = "running";
    this.isStopping = false;
    this.isStarted = this.lane("startup") === undefined;
  }
  end(nowMs: number): void {
    const { run } = this;
    if (run !== undefined) run.endedAtMs = nowMs;
    this.state = "terminated";
    this.isStopping = false;
  }
  /** After each change: what the workers see of it, and the record. */
  settle(isPodEnded: boolean, nowMs: number): void {
    const isRunning = this.state === "running";
    if (!isRunning) this.isStarted = false;
    if (!this.isStarted) this.isReady = false;
    this.#started.note(this.isStarted, nowMs);
    this.#ready.note(this.isReady, nowMs);
    const { run, state, isStarted: started, willRestart } = this;
    const startedAtMs = isRunning ? (run?.startedAtMs ?? null) : null;
    const container = run === undefined ? null : { id: run.id, state, startedAtMs, started, willRestart };
    this.#seen = { ended: isPodEnded, deleting: false, container };
  }
}
const NOT_THERE: PodSeen = { ended: false, deleting: false, container: null };
