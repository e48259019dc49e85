import { setTimeout as sleep } from "node:timers/promises";

/** Generous, for a machine that is slow and loaded. */
export const WAIT_MS = 120_000;
const LOOK_MS = 50;
/** The time until the next check. It grows with the wait, because each check costs CPU time, also in the daemon. */
const nextLookMs = (waitedMs: number): number => Math.min(LOOK_MS + waitedMs / 10, 500);
/** The options of expect.poll for changes that another process makes. */
export const WAITS = { timeout: WAIT_MS, interval: 2 * LOOK_MS } as const;

/** Waits until `look` returns a result, and returns it. On a timeout, the error contains the text of `reportOf`. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  reportOf: () => string = () => "",
): Promise<T> {
  for (const began = Date.now(); ; await sleep(nextLookMs(Date.now() - began))) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > began + WAIT_MS) throw new Error(`waited too long for ${what}\n${reportOf()}`);
  }
}

/** The result for `until` when only a condition matters. */
export const holds = (is: boolean): true | undefined => is || undefined;
