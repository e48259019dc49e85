import {
  CALM,
  type FailedContainer,
  type GuardRecord,
  type GuardSettings,
  type GuardState,
  guardStep,
} from "../../api/decide/probes/guard.ts";
import type { ProbeClock } from "./clock.ts";
import type { LiveWorker } from "./live-worker.ts";
import type { ProbeTime } from "./probe-time.ts";

export interface StormPorts {
  readonly settings: GuardSettings;
  readonly time: Pick<ProbeTime, "now">;
  readonly after: ProbeClock["after"];
  /** Groups of pods that have a liveness probe. */
  readonly groups: () => number;
  /** The kill of the container goes ahead. */
  readonly onKill: (worker: LiveWorker) => void;
  /** Its containers by name. */
  readonly onRecord: (record: GuardRecord) => void;
}
/** What fails together is judged together; a kill waits no longer for it. */
const GATHER_MS = 100;

/** Gathers what the guard decides on. */
export class Storm {
  readonly #ports: StormPorts;
  #state: GuardState = CALM;
  /** Those that the guard knows, or will. */
  readonly #known = new Map<string, { readonly name: string; readonly worker: LiveWorker }>();
  #holding: GuardRecord | null = null;
  /** By container. */
  #failed = new Map<string, FailedContainer>();
  #recovered: string[] = [];
  #gone: string[] = [];
  #disarm: (() => void) | null = null;

  constructor(ports: StormPorts) {
    this.#ports = ports;
  }

  /** The last word on what is held; null: nothing is. */
  get holding(): GuardRecord | null {
    return this.#holding;
  }

  failed(failure: FailedContainer, name: string, worker: LiveWorker): void {
    this.#known.set(failure.containerId, { name, worker });
    this.#failed.set(failure.containerId, failure);
    this.#arm();
  }
  recovered(containerId: string): void {
    this.#recovered.push(containerId);
    this.#arm();
  }
  gone(containerId: string): void {
    this.#failed.delete(containerId);
    this.#gone.push(containerId);
    this.#arm();
  }
  close(): void {
    this.#disarm?.();
  }

  #arm(): void {
    this.#disarm ??= this.#ports.after(GATHER_MS, () => this.#judge());
  }
  #judge(): void {
    const { settings, time, groups, onKill } = this.#ports;
    this.#disarm = null;
    const [failed, recovered, gone] = [[...this.#failed.values()], this.#recovered, this.#gone];
    this.#failed = new Map();
    this.#recovered = [];
    this.#gone = [];
    const events = { atMs: time.now(), groups: groups(), failed, recovered, gone };
    const { next, killed, record } = guardStep(settings, this.#state, events);
    this.#state = next;
    if (record !== null) this.#tell(record);
    for (const containerId of killed) {
      const known = this.#known.get(containerId);
      if (known !== undefined) onKill(known.worker);
    }
    for (const containerId of this.#known.keys()) if (!next.has(containerId)) this.#known.delete(containerId);
  }

  #tell(record: GuardRecord): void {
    const nameOf = (containerId: string): string => this.#known.get(containerId)?.name ?? containerId;
    const held = record.held.map(nameOf);
    const released = record.released.map(({ containerId, why }) => ({ containerId: nameOf(containerId), why }));
    const named = { ...record, held, released };
    this.#holding = record.holding > 0 ? named : null;
    this.#ports.onRecord(named);
  }
}
