import { performance } from "node:perf_hooks";

const LOOK_MS = 10_000;
/** A thread is idle if it worked for less than this part of the time between two looks, this many times in a row. */
const QUIET = 0.01;
const LOOKS = 3;
/** The work since the last collection that makes another one worthwhile, ms. */
const WORTH_MS = 300;

interface CollectOptions {
  readonly type: "major";
  readonly execution: "sync";
  /** Also returns the pages of the young generation to the system. */
  readonly flavor: "last-resort";
}
/** Available with `--expose-gc`. */
const { gc } = globalThis as { readonly gc?: (options: CollectOptions) => void };

/**
 * Collects this thread's garbage when it is idle after work: V8 collects only when memory is requested, so an idle thread would
 * keep what its last requests left. A collection takes some 50 ms and discards compiled code, which later requests compile again.
 * Does nothing without `--expose-gc`. Returns a function that stops it.
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
