import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";

const CHECK_INTERVAL_MS = 10_000;
/** A thread is idle if it worked for less than this part of the time between two checks, this many times in a row. */
const QUIET = 0.01;
const IDLE_CHECKS = 3;
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
  // what runs before the event loop is not in its figures, and leaves enough
  let [quiet, collectedAt] = [0, -WORTH_MS];
  const check = (): void => {
    const now = performance.eventLoopUtilization();
    quiet = performance.eventLoopUtilization(now, before).utilization < QUIET ? quiet + 1 : 0;
    before = now;
    if (quiet < IDLE_CHECKS || now.active - collectedAt < WORTH_MS) return;
    gc({ type: "major", execution: "sync", flavor: "last-resort" });
    before = performance.eventLoopUtilization();
    collectedAt = before.active;
  };
  return checkRegularly(check);
}

/** The heap grows in small steps, which saves a fifth to a third of the memory of many objects, for more frequent collections. */
export const SMALL_STEPS = "--heap-growing-percent=40";
const LARGE_STEPS = "--heap-growing-percent=70";
/** The used heap from which on the steps are large, bytes. */
const LARGE = 512 * 2 ** 20;

/**
 * Lets a large heap, with the states of thousands of nodes, grow in larger steps: a full collection of it slows all requests for half a
 * second, and with a fifth more memory there are little more than half as many. Does nothing in a process that was not started with small
 * steps. Returns a function that stops it.
 */
export function growWithHeap(): () => void {
  if (!process.execArgv.includes(SMALL_STEPS)) return () => {};
  let steps: string = SMALL_STEPS;
  const check = (): void => {
    const now = process.memoryUsage().heapUsed > LARGE ? LARGE_STEPS : SMALL_STEPS;
    if (now !== steps) setFlagsFromString(now);
    steps = now;
  };
  return checkRegularly(check);
}

function checkRegularly(check: () => void): () => void {
  const timer = setInterval(check, CHECK_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
