import * as z from "zod";
import type { Result } from "../../../api/base/result.ts";
import { HistoryFile, type HistoryPlace, readHistory } from "../../core/history-file.ts";
import type { PodClock } from "../pod-clock.ts";

/** The number of ids that an entry lists; `count` has their full number. */
export const MAX_NAMED = 16;

const health = z.string().nullable();
/** A line of a node's device history. */
const historyEntry = z.object({
  /** RFC 3339. */
  at: z.string(),
  kind: z.enum(["registered", "ended", "removed", "flips", "allocated", "given-back", "refused", "leak"]),
  resource: z.string(),
  /** The plugin's socket. */
  endpoint: z.string().optional(),
  /** The number of devices or flips; for a refusal, how often it occurred in a row; absent: once. */
  count: z.number().optional(),
  /** The first devices. */
  devices: z.array(z.string()).optional(),
  /** The last flips; `from` null: the device was not listed before. */
  flips: z.array(z.object({ id: z.string(), from: health, to: health })).optional(),
  podUid: z.string().optional(),
  /** NAMESPACE/NAME, if it was known. */
  pod: z.string().optional(),
  container: z.string().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
});
export type DeviceHistoryEntry = z.output<typeof historyEntry>;
/** An entry without its time. */
export type DeviceEvent = Omit<DeviceHistoryEntry, "at">;

/** An entry; null: the line is invalid, for example truncated. */
function readEntry(line: string): DeviceHistoryEntry | null {
  try {
    return historyEntry.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}

interface DeviceHistoryOptions {
  readonly stateDir: string;
  readonly clock: Pick<PodClock, "nowMs">;
  /** Called once when writing fails, and again only after it has worked. */
  readonly onFault: (message: string) => void;
}
const placeIn = (stateDir: string): HistoryPlace => ({ directory: stateDir, name: "device-history" });

/** The history of a node's devices. */
export class DeviceHistory {
  readonly #file: HistoryFile;
  readonly #clock: Pick<PodClock, "nowMs">;

  constructor({ stateDir, clock, onFault }: DeviceHistoryOptions) {
    this.#file = new HistoryFile(placeIn(stateDir), onFault);
    this.#clock = clock;
  }

  /** Appends events. Never throws: events that cannot be written are lost. */
  add(events: readonly DeviceEvent[]): void {
    if (events.length === 0) return;
    const at = new Date(this.#clock.nowMs()).toISOString();
    this.#file.add(events.map((event) => ({ at, ...event })));
  }
}

/** The newest `limit` entries, newest first. Error: the file exists and cannot be read. */
export const readDeviceHistory = (
  stateDir: string,
  { limit }: { readonly limit: number },
): Result<readonly DeviceHistoryEntry[], string> => readHistory(placeIn(stateDir), limit, readEntry);
