import { performance } from "node:perf_hooks";

const LOOK_MS = 10_000;
/** A thread is idle that has worked for less than this part of the time between two looks, so many times one after the other. */
const QUIET = 0.01;
const LOOKS = 3;
/** Work since the last collection, in milliseconds, that makes another worth its while. */
const WORTH_MS = 300;

interface CollectOptions {
  readonly type: "major";
  readonly execution: "sync";
  /** Gives back the pages of the young generation too. */
  readonly flavor: "last-resort";
}
/** There with `--expose-gc`. */
const { gc } = globalThis as { readonly gc?: (options: CollectOptions) => void };

/**
 * Collects this thread's garbage once it has worked and is idle: V8 collects when memory is asked for, so that a thread without work
 * would keep what its last requests left behind. Such a collection takes some 50 ms, and forgets compiled code, which comes back
 * with the next requests. Does nothing where Node was started without `--expose-gc`. Answers how to end it.
 */
export function collectWhenIdle(): () => void {
  if (gc === undefined) return () => {};
  let before = performance.eventLoopUtilization();
  let [quiet, collectedAt] = [0, 0];
  const look = (): void => {
    const now = performance.eventLoopUtilization();
    quiet = performance.eventLoopUtilization(now, before).utilization < QUIET ? quiet + 1 : 0;
    before = now;
    if (quiet < LOOKS || now.active - collectedAt < WORTH_MS) return;
    gc({ type: "major", execution: "sync", flavor: "last-resort" });
    before = performance.eventLoopUtilization();
    collectedAt = before.active;
  };
  const looking = setInterval(look, LOOK_MS);
  looking.unref();
  return () => clearInterval(looking);
}
