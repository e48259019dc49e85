import { Worker } from "node:worker_threads";
import { failure, type StoreFailure } from "../../db/failure.ts";
import { openNode } from "../../db/open-node.ts";
import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../model/result.ts";
import { type Delivery, type Order, WRITES, type Write } from "./history-thread.ts";

const ENTRY = new URL("./history-thread.ts", import.meta.url);

type Answer = Result<unknown, StoreFailure>;
interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The history of a file, which it reads here and writes in a thread: a commit waits for the disk, and would hold up every
 * request meanwhile. INVARIANT: as in the store itself, what a write answers is on disk, and reads here see it.
 */
export async function openHistory(file: string): Promise<Result<Store, StoreFailure>> {
  const reader = openNode({ file });
  if (!reader.ok) return reader;
  const writer = new Writer(file);
  const opened = await writer.opened;
  if (!opened.ok) {
    await reader.value.close();
    return opened;
  }
  const writes = Object.fromEntries(
    WRITES.map((method) => [method, (...args: unknown[]) => writer.send(method, args)]),
  );
  return ok({
    ...reader.value,
    ...(writes as unknown as Pick<Store, Write>),
    close: async () => {
      await writer.close();
      await reader.value.close();
    },
  });
}

class Writer {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<unknown>;
  readonly opened: Promise<Answer>;
  #number = 1;
  #gone = false;

  constructor(file: string) {
    this.#worker = new Worker(ENTRY, { workerData: { historyFile: file } });
    this.opened = new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    this.#worker.on("message", (delivery: Delivery) => this.#settle(delivery));
    this.#worker.on("error", (error) => this.#lose(error instanceof Error ? error.message : String(error)));
    this.#ended = new Promise<void>((resolve) => {
      this.#worker.on("exit", () => {
        this.#lose("it ended");
        resolve();
      });
    });
    void this.opened.then(() => this.#worker.unref());
  }

  send(method: Write, args: readonly unknown[]): Promise<Answer> {
    if (this.#gone) return Promise.resolve(failure("unavailable", "the history is closed"));
    const order: Order = { number: this.#number++, method, args };
    return new Promise((resolve, reject) => {
      this.#waiting.set(order.number, { resolve, reject });
      this.#worker.postMessage(order);
    });
  }

  /** Ends the thread when all that was sent is written. */
  async close(): Promise<void> {
    if (!this.#gone) this.#worker.postMessage({ number: this.#number++, method: "close", args: [] } satisfies Order);
    this.#gone = true;
    this.#worker.ref();
    await this.#ended;
  }

  #settle(delivery: Delivery): void {
    const waiting = this.#waiting.get(delivery.number);
    this.#waiting.delete(delivery.number);
    if ("result" in delivery) waiting?.resolve(delivery.result);
    else waiting?.reject(new Error(`the history's thread failed: ${delivery.fault}`));
  }

  /** What was under way may or may not be on disk: the caller hears that it is not. */
  #lose(reason: string): void {
    this.#gone = true;
    for (const { resolve } of this.#waiting.values())
      resolve(failure("unavailable", `the history's thread is gone: ${reason}; start again`));
    this.#waiting.clear();
  }
}
