import * as z from "zod";

/** Ids that an entry names; how many there were stands in `count`. */
export const MOST_NAMED = 16;

const health = z.string().nullable();
/** A line of a node's device history. */
export const historyEntry = z.object({
  /** RFC 3339. */
  at: z.string(),
  kind: z.enum(["registered", "ended", "removed", "flips", "allocated", "given-back", "refused", "leak"]),
  resource: z.string(),
  /** The plugin's socket. */
  endpoint: z.string().optional(),
  /** Devices, or flips, that it is about; of a refusal: how often it was the same in a row, absent: once. */
  count: z.number().optional(),
  /** The first of them. */
  devices: z.array(z.string()).optional(),
  /** The last of them; null: it was not listed then. */
  flips: z.array(z.object({ id: z.string(), from: health, to: health })).optional(),
  podUid: z.string().optional(),
  /** NAMESPACE/NAME, where it was known then. */
  pod: z.string().optional(),
  container: z.string().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
});
export type DeviceHistoryEntry = z.output<typeof historyEntry>;
/** Before it is written. */
export type DeviceEvent = Omit<DeviceHistoryEntry, "at">;

/** Null: the line is none, as when it was cut short. */
export function readEntry(line: string): DeviceHistoryEntry | null {
  try {
    return historyEntry.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
