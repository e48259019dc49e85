import { setFlagsFromString } from "node:v8";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { failure, type StoreFailure } from "../../db/failure.ts";
import { type StoreSetting, storeAt } from "../../db/open/node.ts";
import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../base/result.ts";
import type { EpochMs } from "../model/units.ts";
import { errorFields, type Log } from "../observe/log.ts";
import { pruneOnce, type Sweep } from "../retention.ts";
import { type TaskQueue, taskQueue } from "../service/task-queue.ts";
import { type Delivery, type HistoryThreadData, type Order, WRITES, type Write } from "./history-thread.ts";

const EVERY_MS = 10 * 60 * 1000;

/** Prunes now and every ten minutes. After `stop`, a sweep under way may find the history closed, which is not logged. */
export function startPruning(store: Store, now: () => EpochMs, server: Log, sweep: Sweep): { stop(): void } {
  let running = false;
  let stopped = false;
  const unlessStopped =
    (level: keyof Log): Log[typeof level] =>
    (...line) =>
      stopped ? undefined : server[level](...line);
  const log: Log = { info: unlessStopped("info"), warn: unlessStopped("warn"), error: unlessStopped("error") };
  const prune = async (): Promise<void> => {
    if (running) return;
    running = true;
    try {
      await pruneOnce(store, now(), log, sweep);
    } catch (error) {
      log.error(errorFields(error), "internal fault");
    }
    running = false;
  };
  const timer = setInterval(prune, EVERY_MS);
  timer.unref();
  void prune();
  return {
    stop: () => {
      stopped = true;
      clearInterval(timer);
    },
  };
}

const ENTRY = new URL("./history-thread.ts", import.meta.url);
/** MiB of a half of the thread's young generation. Rows are short-lived, and nearly all of their bytes are outside the heap. */
const NURSERY = 2;

type Answer = Result<unknown, StoreFailure>;
interface PendingCall {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** A history that is written in a thread of its own. */
export interface History {
  readonly store: Store;
  /** A port for another thread of this process, which reads the same history: see `writesOver`. */
  connect(): MessagePort;
}

/**
 * The history of `setting`, read here and written in a thread: a commit waits for the disk, which would block every request
 * meanwhile. INVARIANT: as in the store itself, when a write returns it is on disk, and reads here see it. Callers whose writes
 * were committed together continue one after the other, in `tasks`.
 */
export async function openHistory(
  setting: StoreSetting,
  tasks: TaskQueue = taskQueue(),
): Promise<Result<History, StoreFailure>> {
  const reader = await storeAt(setting).open();
  if (!reader.ok) return reader;
  // V8 reads this when it creates a heap; it overrides a thread's resourceLimits if the process has it
  setFlagsFromString(`--max-semi-space-size=${NURSERY}`);
  const worker = new Worker(ENTRY, { workerData: { history: setting } satisfies HistoryThreadData });
  // the thread does not keep the process alive, but a pending write does
  const hold = (isAwaited: boolean): void => void (isAwaited ? worker.ref() : worker.unref());
  const writer = new Writer((order) => worker.postMessage(order), hold);
  const inOrder = (work: () => void): void => void tasks(async () => work(), false);
  worker.on("message", (delivery: Delivery) => inOrder(() => writer.settle(delivery)));
  worker.on("error", (error) => inOrder(() => writer.lose(error instanceof Error ? error.message : String(error))));
  const ended = new Promise<void>((resolve) => worker.on("exit", () => inOrder(resolve)));
  void ended.then(() => writer.lose("it ended"));
  const opened = await writer.opened;
  if (!opened.ok) {
    await reader.value.close();
    return opened as Result<never, StoreFailure>;
  }
  const close = async (): Promise<void> => {
    // the thread ends when everything sent so far is written
    void writer.send("close", []);
    writer.isClosed = true;
    worker.ref();
    await ended;
    await reader.value.close();
  };
  const connect = (): MessagePort => {
    const { port1, port2 } = new MessageChannel();
    worker.postMessage({ connect: port1 } satisfies Order, [port1]);
    return port2;
  };
  return ok({ store: { ...reader.value, ...writer.writes, close }, connect });
}

/** A history's writes through a port of its `connect`. */
export function writesOver(port: MessagePort): Pick<Store, Write> {
  const writer = new Writer((order) => port.postMessage(order));
  port.on("message", (delivery: Delivery) => writer.settle(delivery));
  port.on("close", () => writer.lose("it ended"));
  port.unref();
  return writer.writes;
}

class Writer {
  readonly #post: (order: Order) => void;
  readonly #hold: (isAwaited: boolean) => void;
  readonly #waiting = new Map<number, PendingCall>();
  /** Whether the history's thread could open it. */
  readonly opened: Promise<Answer>;
  #number = 1;
  isClosed = false;

  /** `hold`: called whenever it changes whether an answer is pending; at first, that of `opened` is. */
  constructor(post: (order: Order) => void, hold: (isAwaited: boolean) => void = () => {}) {
    this.#post = post;
    this.#hold = hold;
    this.opened = new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
  }

  get writes(): Pick<Store, Write> {
    const sent = WRITES.map((method) => [method, (...args: unknown[]) => this.send(method, args)] as const);
    return Object.fromEntries(sent) as unknown as Pick<Store, Write>;
  }

  send(method: Write | "close", args: readonly unknown[]): Promise<Answer> {
    if (this.isClosed) return Promise.resolve(failure("unavailable", "the history is closed"));
    const number = this.#number++;
    if (this.#waiting.size === 0) this.#hold(true);
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#post({ number, method, args });
    });
  }

  settle(delivery: Delivery): void {
    const waiting = this.#waiting.get(delivery.number);
    this.#waiting.delete(delivery.number);
    if (this.#waiting.size === 0) this.#hold(false);
    if ("result" in delivery) waiting?.resolve(delivery.result);
    else waiting?.reject(new Error(`the history's thread failed: ${delivery.fault}`));
  }

  /** Fails all pending calls. Their writes may or may not be on disk; callers learn that they failed. */
  lose(reason: string): void {
    this.isClosed = true;
    for (const { resolve } of this.#waiting.values())
      resolve(failure("unavailable", `the history's thread is gone: ${reason}; start again`));
    this.#waiting.clear();
    this.#hold(false);
  }
}
