import { setTimeout as sleep } from "node:timers/promises";

/** A machine that is slow and loaded takes long. */
export const WAIT_MS = 120_000;
const LOOK_MS = 50;
/** For expect.poll, of what another process brings about. */
export const WAITS = { timeout: WAIT_MS, interval: LOOK_MS } as const;

/** Waits until `look` finds something, and answers it; `told` says what there was to see when it never did. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  told: () => string = () => "",
): Promise<T> {
  for (const deadline = Date.now() + WAIT_MS; ; await sleep(LOOK_MS)) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited too long for ${what}\n${told()}`);
  }
}

/** For conditions that find nothing more than that they hold. */
export const holds = (is: boolean): true | undefined => is || undefined;
