import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { evaluator } from "../routes/evaluate.ts";
import type { Evaluate, Evaluation, Job } from "../routes/evaluation.ts";
import { sha256 } from "./digest.ts";
import type { Delivery, Order } from "./evaluate-thread.ts";

/** Smaller bodies are decided here: handing them over would cost as much. */
const INLINE_BELOW = 32 * 1024;
/** MiB in which a thread's objects begin. A request leaves nothing behind, so the larger this is, the less is ever looked at. */
const NURSERY = 32;
const ENTRY = new URL("./evaluate-thread.ts", import.meta.url);

interface Waiting {
  readonly resolve: (evaluation: Evaluation) => void;
  readonly reject: (error: Error) => void;
}
interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
  /** It has loaded its code, and takes jobs. */
  isReady: boolean;
}
export interface Threads {
  readonly evaluate: Evaluate;
  /** Ends the threads; what they still work on fails. */
  close(): Promise<void>;
}

/**
 * Evaluates large jobs in up to `most` threads, so that they neither hold up the event loop nor wait for one core. A thread is
 * started when none is idle; until it is ready, and with `most` 0, this thread does the work.
 */
export function threads(most: number): Threads {
  const inline = evaluator(sha256);
  const all: Thread[] = [];
  let number = 0;
  let allowed = most;

  const start = (): void => {
    // read when a heap is made, so this thread keeps its own
    setFlagsFromString(`--min-semi-space-size=${NURSERY}`);
    setFlagsFromString(`--max-semi-space-size=${NURSERY}`);
    const thread: Thread = {
      worker: new Worker(ENTRY, { workerData: { evaluates: true } }),
      waiting: new Map(),
      isReady: false,
    };
    thread.worker.on("message", (delivery: Delivery) => settle(thread, delivery));
    thread.worker.on("error", (error) => lose(thread, error instanceof Error ? error : new Error(String(error))));
    thread.worker.on("exit", () => lose(thread, new Error("a deciding thread ended")));
    thread.worker.unref();
    all.push(thread);
  };
  /** Its jobs fail; another takes its place when it is needed, unless threads cannot be had here at all. */
  const lose = (thread: Thread, error: Error): void => {
    const at = all.indexOf(thread);
    if (at < 0) return;
    all.splice(at, 1);
    if (!thread.isReady) allowed = 0;
    for (const { reject } of thread.waiting.values()) reject(error);
  };
  const idlest = (): Thread | undefined => {
    const ready = all.filter((thread) => thread.isReady);
    const [first] = ready;
    if (first === undefined) return undefined;
    return ready.reduce((a, b) => (b.waiting.size < a.waiting.size ? b : a), first);
  };
  const evaluate: Evaluate = (job) => {
    if (sizeOf(job) < INLINE_BELOW) return inline(job);
    const thread = idlest();
    const starting = all.some(({ isReady }) => !isReady);
    if ((thread === undefined || thread.waiting.size > 0) && all.length < allowed && !starting) start();
    return thread === undefined ? inline(job) : send(thread, number++, job);
  };
  return {
    evaluate,
    close: async () => {
      allowed = 0;
      await Promise.all(all.map(({ worker }) => worker.terminate()));
    },
  };
}

function send(thread: Thread, number: number, job: Job): Promise<Evaluation> {
  const moved = "bytes" in job ? { ...job, bytes: movable(job.bytes) } : job;
  const order: Order = { number, job: moved };
  return new Promise((resolve, reject) => {
    thread.waiting.set(number, { resolve, reject });
    thread.worker.postMessage(order, "bytes" in moved ? [moved.bytes.buffer as ArrayBuffer] : []);
  });
}

const sizeOf = (job: Job): number => ("bytes" in job ? job.bytes.length : job.stored.text.length);

function settle(thread: Thread, delivery: Delivery): void {
  if (delivery === "ready") {
    thread.isReady = true;
    return;
  }
  const job = thread.waiting.get(delivery.number);
  thread.waiting.delete(delivery.number);
  if ("evaluation" in delivery) job?.resolve(delivery.evaluation);
  else job?.reject(new Error(`a deciding thread failed: ${delivery.fault}`));
}

/** Bytes with a buffer of their own, which is handed over rather than copied; small Buffers share one, and are copied. */
const movable = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
