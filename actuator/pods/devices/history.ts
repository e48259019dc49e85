import type { Result } from "../../../api/model/result.ts";
import { HistoryFile, type HistoryPlace, readHistory } from "../../history-file.ts";
import type { PodClock } from "../clock.ts";
import { type DeviceEvent, type DeviceHistoryEntry, readEntry } from "./history-entry.ts";

export interface DeviceHistoryOptions {
  readonly stateDir: string;
  readonly clock: Pick<PodClock, "nowMs">;
  /** Told once, until it can be written again. */
  readonly onFault: (message: string) => void;
}
const placeIn = (stateDir: string): HistoryPlace => ({ directory: stateDir, name: "device-history" });

/** What happened to a node's devices. */
export class DeviceHistory {
  readonly #file: HistoryFile;
  readonly #clock: Pick<PodClock, "nowMs">;

  constructor({ stateDir, clock, onFault }: DeviceHistoryOptions) {
    this.#file = new HistoryFile(placeIn(stateDir), onFault);
    this.#clock = clock;
  }

  /** Never throws: what cannot be written is lost. */
  add(events: readonly DeviceEvent[]): void {
    if (events.length === 0) return;
    const at = new Date(this.#clock.nowMs()).toISOString();
    this.#file.add(events.map((event) => ({ at, ...event })));
  }
}

/** The newest `limit` entries, the newest first. Error: a file is there and cannot be read. */
export const readDeviceHistory = (
  stateDir: string,
  { limit }: { readonly limit: number },
): Result<readonly DeviceHistoryEntry[], string> => readHistory(placeIn(stateDir), limit, readEntry);
