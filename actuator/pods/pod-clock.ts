import { setTimeout as sleep } from "node:timers/promises";
import type { PodEvent } from "../lifecycle/record.ts";

/** The time for pods' workers; a simulation replaces it. */
export interface PodClock {
  /** Wall clock, milliseconds since 1970. */
  nowMs(): number;
  /** A monotonic clock for grace periods and back-offs. */
  monotonicMs(): number;
  /** Returns early, and never throws, once `signal` is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: PodClock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => {}),
};

/** A pod's directories on the machine's disk. */
export interface PodPlaces {
  readonly podDirectory: string;
  readonly logDirectory: string;
}

export type OnPodEvent = (event: PodEvent) => void;
