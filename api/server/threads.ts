import { setFlagsFromString } from "node:v8";
import { type MessagePort, Worker } from "node:worker_threads";
import type { Hono } from "hono";
import { err } from "../base/result.ts";
import type { DecidedHead, OffThread } from "../dependencies.ts";
import type { Counts } from "../http/decide.ts";
import { TRUSTED } from "../http/serve.ts";
import type { Log } from "../observe/log.ts";
import { evaluator } from "../service/evaluate.ts";
import type { Evaluate } from "../service/evaluation.ts";
import type { Problem } from "../service/problem.ts";
import { type TaskQueue, taskQueue } from "../service/task-queue.ts";
import { movable, sha256 } from "./digest.ts";
import type { Delivery, Order, RoutesOf, Task, ThreadData } from "./evaluate-thread.ts";

const FIRST = ["/", "/what-if", "/replay", "/lint", "/upgrade", "/docs"];
/** Links to pages of one kind: the first one found stands for all. */
const OF_ONE = [
  /href="(\/nodes\/[^"?/#]+)"/,
  /href="(\/nodes\/[^"?/#]+\/decisions)[^"]*"/,
  /href="(\/decisions\/[^"?/#]+)"/,
];

/**
 * Renders each kind of page once, one after the other with time for requests in between, so that the first visitor does not wait
 * for code that has never run. Ends early at `closing`; the responses are discarded.
 */
export async function warmUp(app: Pick<Hono, "fetch">, closing: AbortSignal): Promise<void> {
  const seen = new Set<string>();
  const queue = [...FIRST];
  for (let path = queue.shift(); path !== undefined && !closing.aborted; path = queue.shift()) {
    seen.add(path);
    const request = new Request(`http://localhost${path}`, { headers: { accept: "text/html" }, signal: closing });
    const text = await (await app.fetch(request, { [TRUSTED]: true })).text();
    for (const kind of OF_ONE) {
      if ([...seen, ...queue].some((known) => kind.test(`href="${known}"`))) continue;
      const linked = kind.exec(text)?.[1];
      if (linked !== undefined) queue.push(linked.replaceAll("&amp;", "&"));
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Smaller bodies are decided on this thread: transferring them would cost as much. */
export const INLINE_BELOW = 32 * 1024;
/** MiB of a half of a thread's young generation. A larger one means less to collect, and more memory (docs/adr/0011). */
const NURSERY = 8;
/** MiB of a thread's heap: a thread that needs more ends, without affecting anything else. */
const HEAP = 1024;
/**
 * The most tasks that a thread has at a time. A decision's memory is used until it ends, and one running and one waiting task keep
 * a thread busy; a replay yields to others and must not keep decisions waiting. A task that has not started can be cancelled.
 */
const depthOf = ({ of }: Task): number => (of === "route" ? 8 : 2);
/** A thread ends after it has been idle for this long. */
const IDLE_MS = 15_000;
const IDLE_CHECK_MS = 5_000;
const ENTRY = new URL("./evaluate-thread.ts", import.meta.url);

interface QueuedTask {
  readonly number: number;
  readonly task: Task;
  readonly resolve: (done: never) => void;
  readonly reject: (error: Error) => void;
  /** Returns a problem in the task's own form. */
  readonly refuse: (problem: Problem) => void;
  readonly onDecided: ((head: DecidedHead) => void) | undefined;
}
interface Thread {
  readonly worker: Worker;
  readonly orders: Map<number, QueuedTask>;
  /** Tasks that are decided and wait for the disk. */
  readonly waiting: Set<number>;
  /** The thread has loaded its code and accepts tasks. */
  isReady: boolean;
  idleSinceMs: number;
}
export interface Threads {
  readonly evaluate: Evaluate;
  readonly offThread: OffThread;
  /** Ends the threads; their pending tasks fail. */
  close(): Promise<void>;
}

interface ThreadsOptions {
  /** The number of threads that start at once and never end. Default: none. */
  readonly least?: number;
  /** Null if threads neither decide nor answer routes. `connect`: see `History`; null if a thread writes its own store. */
  readonly server: (RoutesOf & { readonly connect: () => MessagePort | null }) | null;
  readonly log?: Log;
  /** Counts the decisions made in threads. */
  readonly metrics?: Counts;
  /** The tasks of the event loop: its own decisions, and handling results of threads. */
  readonly tasks?: TaskQueue;
}

/**
 * Runs work that would block the event loop in up to `most` threads. A new one starts if none is free, and work waits for it; with
 * `most` 0, or where threads are not available, the event loop does everything.
 */
export function threads(most: number, options: ThreadsOptions = { server: null }): Threads {
  const { server, tasks = taskQueue() } = options;
  const pool = new Pool(most, { ...options, tasks });
  const inline = evaluator(sha256);
  const problemResult = (problem: Problem): never => err(problem) as never;
  const isOffThread = (bytes: number): boolean => pool.isOpen && bytes >= INLINE_BELOW;
  return {
    evaluate: (job) => tasks(async () => inline(job), job.kind === null),
    offThread: {
      decide: (asked, bytes, signal, onDecided) => {
        if (server === null || !isOffThread(bytes)) return null;
        const task = { of: "decide" as const, asked: { ...asked, bytes: movable(asked.bytes) } };
        return pool.order(task, signal, problemResult, onDecided);
      },
      route: (request, signal) => {
        if (!pool.isOpen || server === null) return null;
        const { body } = request;
        const moved = body.ok ? { ...request, body: { ok: true as const, value: movable(body.value) } } : request;
        return pool.order({ of: "route", request: moved }, signal, problemResult);
      },
      snapshot: (bytes, signal) =>
        isOffThread(bytes.length) ? pool.order({ of: "snapshot", bytes: movable(bytes) }, signal, problemResult) : null,
      report: (bytes, signal) =>
        isOffThread(bytes.length) ? pool.order({ of: "report", bytes: movable(bytes) }, signal, problemResult) : null,
    },
    close: () => pool.close(),
  };
}

class Pool {
  readonly #options: ThreadsOptions & { readonly tasks: TaskQueue };
  readonly #threads: Thread[] = [];
  readonly #waiting: QueuedTask[] = [];
  readonly #idleCheck: ReturnType<typeof setInterval>;
  #most: number;
  #least: number;
  #number = 0;
  #unanswered = 0;

  constructor(most: number, options: ThreadsOptions & { readonly tasks: TaskQueue }) {
    this.#most = most;
    this.#least = Math.min(options.least ?? 0, most);
    this.#options = options;
    this.#idleCheck = setInterval(() => this.#endIdle(), IDLE_CHECK_MS);
    this.#idleCheck.unref();
    for (let i = 0; i < this.#least; i++) this.#start();
  }

  get isOpen(): boolean {
    return this.#most > 0;
  }

  order<T>(
    task: Task,
    signal: AbortSignal | undefined,
    problemIn: (problem: Problem) => T,
    onDecided?: QueuedTask["onDecided"],
  ): Promise<T> {
    const number = this.#number++;
    // a batch has one signal for all of its lines
    const onGone = (): void => this.#cancel(number);
    const answer = new Promise<T>((resolve, reject) => {
      const refuse = (problem: Problem): void => resolve(problemIn(problem));
      if (signal?.aborted === true) return refuse(GONE);
      this.#waiting.push({ number, task, resolve: resolve as QueuedTask["resolve"], reject, refuse, onDecided });
      signal?.addEventListener("abort", onGone, { once: true });
      this.#assign();
    });
    // threads do not keep the process alive, but a pending task does
    if (this.#unanswered++ === 0) this.#idleCheck.ref();
    return answer.finally(() => {
      signal?.removeEventListener("abort", onGone);
      if (--this.#unanswered === 0) this.#idleCheck.unref();
    });
  }

  async close(): Promise<void> {
    this.#most = 0;
    clearInterval(this.#idleCheck);
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
    for (const { reject } of this.#waiting.splice(0)) reject(new Error("the server has ended"));
  }

  #start(): void {
    // V8 reads these when it creates a heap, so this thread keeps its own
    setFlagsFromString(`--min-semi-space-size=${NURSERY}`);
    setFlagsFromString(`--max-semi-space-size=${NURSERY}`);
    const { server } = this.#options;
    const writes = server?.connect() ?? null;
    const workerData: ThreadData = {
      evaluates: true,
      server: server === null ? null : { history: server.history, limits: server.limits, writes },
    };
    const transferList = writes === null ? [] : [writes];
    const thread: Thread = {
      worker: new Worker(ENTRY, { workerData, transferList, resourceLimits: { maxOldGenerationSizeMb: HEAP } }),
      orders: new Map(),
      waiting: new Set(),
      isReady: false,
      idleSinceMs: performance.now(),
    };
    thread.worker.on("message", (delivery: Delivery) => this.#take(thread, delivery));
    thread.worker.on("error", (error) =>
      this.#remove(thread, error instanceof Error ? error : new Error(String(error))),
    );
    thread.worker.on("exit", () => this.#remove(thread, new Error("a deciding thread ended")));
    thread.worker.unref();
    this.#threads.push(thread);
  }

  /** Hands out pending tasks, each to the least busy thread that has room for it. */
  #assign(): void {
    for (const next of [...this.#waiting]) {
      const ready = this.#threads.filter(({ isReady }) => isReady);
      const isStarting = ready.length < this.#threads.length;
      const isBusy = ready.every((thread) => load(thread) > 0);
      if (isBusy && !isStarting && this.#threads.length < this.#most) this.#start();
      const [thread] = ready.filter((one) => hasCapacity(one, next.task)).sort((a, b) => load(a) - load(b));
      if (thread === undefined) continue;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      thread.orders.set(next.number, next);
      thread.worker.postMessage({ number: next.number, task: next.task } satisfies Order, movedIn(next.task));
    }
  }

  #take(thread: Thread, delivery: Delivery): void {
    if (delivery === "ready") thread.isReady = true;
    else if ("log" in delivery) this.#options.log?.[delivery.log](delivery.fields, delivery.message);
    else if ("counted" in delivery) this.#count(delivery.counted, delivery.args);
    else if ("isWaiting" in delivery) {
      thread.waiting.add(delivery.number);
      thread.orders.get(delivery.number)?.onDecided?.(delivery.isWaiting);
    } else {
      const order = thread.orders.get(delivery.number);
      thread.orders.delete(delivery.number);
      thread.waiting.delete(delivery.number);
      thread.idleSinceMs = performance.now();
      // handling an answer on the event loop counts too
      if ("done" in delivery) void this.#options.tasks(async () => order?.resolve(delivery.done as never), false);
      else order?.reject(new Error(`a deciding thread failed: ${delivery.fault}`));
    }
    this.#assign();
  }

  #count(name: keyof Counts, args: readonly (string | number)[]): void {
    const count = this.#options.metrics?.[name] as ((...args: readonly (string | number)[]) => void) | undefined;
    count?.(...args);
  }

  /** Cancels a task that nobody waits for: if it has started, its thread is notified. */
  #cancel(number: number): void {
    const at = this.#waiting.findIndex((waiting) => waiting.number === number);
    if (at >= 0) this.#waiting.splice(at, 1)[0]?.refuse(GONE);
    for (const { worker, orders } of this.#threads) {
      if (orders.has(number)) worker.postMessage({ abandoned: number } satisfies Order);
    }
  }

  /** Removes a thread, whose tasks fail; another one starts when needed, unless threads are not available at all. */
  #remove(thread: Thread, error: Error): void {
    const at = this.#threads.indexOf(thread);
    if (at < 0) return;
    this.#threads.splice(at, 1);
    const isFull = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
    if (!thread.isReady) this.#most = 0;
    const lost = [...thread.orders.values(), ...(thread.isReady ? [] : this.#waiting.splice(0))];
    for (const order of lost) {
      if (isFull) order.refuse(FULL);
      else order.reject(error);
    }
    this.#assign();
  }

  /** Ends idle threads to free memory: the heap of a running thread never shrinks to its initial size. */
  #endIdle(): void {
    const idle = performance.now() - IDLE_MS;
    for (const thread of [...this.#threads]) {
      if (this.#threads.length <= this.#least) return;
      if (!thread.isReady || thread.orders.size > 0 || thread.idleSinceMs > idle) continue;
      this.#threads.splice(this.#threads.indexOf(thread), 1);
      void thread.worker.terminate();
    }
  }
}

const GONE: Problem = { code: "bad_request", detail: "the client disconnected before it was answered" };
const FULL: Problem = {
  code: "overloaded",
  detail: `deciding took more than ${HEAP} MiB of memory, with what else was decided at the time`,
  headers: { "retry-after": "2" },
};

/** The number of tasks that a thread works on. */
const load = ({ orders, waiting }: Thread): number => orders.size - waiting.size;

function hasCapacity({ orders, waiting }: Thread, task: Task): boolean {
  const isRoute = task.of === "route";
  const alike = [...orders.values()].filter((one) => (one.task.of === "route") === isRoute && !waiting.has(one.number));
  return alike.length < depthOf(task);
}

/** The buffers of a task to transfer. */
function movedIn(task: Task): ArrayBuffer[] {
  const bytes =
    task.of === "decide"
      ? task.asked.bytes
      : task.of === "route"
        ? task.request.body.ok && task.request.body.value
        : task.bytes;
  // empty bytes may share another's buffer
  return bytes === false || bytes.length === 0 ? [] : [bytes.buffer as ArrayBuffer];
}
