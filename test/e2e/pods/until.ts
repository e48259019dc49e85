import { setTimeout as sleep } from "node:timers/promises";

/** A machine that is slow and loaded takes long. */
export const WAIT_MS = 120_000;
const LOOK_MS = 50;
/** The time until the next look, which grows with the wait: the looks themselves are work, of the daemon too. */
const nextLookMs = (waitedMs: number): number => Math.min(LOOK_MS + waitedMs / 10, 500);
/** Options of expect.poll for what another process brings about. */
export const WAITS = { timeout: WAIT_MS, interval: 2 * LOOK_MS } as const;

/** Waits until `look` finds something, and answers it; `reportOf` says what there was to see when it never did. */
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

/** For conditions that find nothing more than that they hold. */
export const holds = (is: boolean): true | undefined => is || undefined;
