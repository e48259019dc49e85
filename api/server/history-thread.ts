import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { StoreFailure } from "../../db/failure.ts";
import { type StoreSetting, storeAt } from "../../db/open/node.ts";
import type { Store } from "../../db/store.ts";
import type { Result } from "../base/result.ts";
import { errorFields } from "../observe/log.ts";
import { collectWhenIdle } from "./heap.ts";

/** The entry of the one thread that writes the history; its first answer, number 0, says whether it could open it. */
export const WRITES = [
  "record",
  "recordTurn",
  "putSnapshot",
  "addResults",
  "putOutcomes",
  "nodeDeleted",
  "writeFacts",
  "createToken",
  "revokeToken",
  "prune",
  "importRows",
  "holdLog",
  "moveLog",
  "releaseLog",
  "ready",
] as const satisfies readonly (keyof Store)[];
export type Write = (typeof WRITES)[number];

export type Order =
  | { readonly number: number; readonly method: Write | "close"; readonly args: readonly unknown[] }
  /** Further orders come through this port. */
  | { readonly connect: MessagePort };
export type Delivery =
  | { readonly number: number; readonly result: Result<unknown, StoreFailure> }
  | { readonly number: number; readonly fault: string };

/** The workerData of the thread. */
export interface HistoryThreadData {
  readonly history: StoreSetting;
}
if (parentPort !== null && workerData?.history !== undefined)
  void serve(parentPort, (workerData as HistoryThreadData).history);

async function serve(parent: MessagePort, setting: StoreSetting): Promise<void> {
  const opened = await storeAt(setting).open();
  parent.postMessage({ number: 0, result: opened.ok ? { ok: true, value: null } : opened } satisfies Delivery);
  if (!opened.ok) return;
  const store = opened.value;
  collectWhenIdle();
  const take = async (order: Order, from: MessagePort): Promise<void> => {
    if ("connect" in order) return takeFrom(order.connect).unref();
    const deliver = (delivery: Delivery): void => from.postMessage(delivery);
    const { number, method, args } = order;
    if (method === "close") {
      await store.close();
      return parent.close();
    }
    const write = store[method] as (...args: readonly unknown[]) => Promise<Result<unknown, StoreFailure>>;
    try {
      deliver({ number, result: await write(...args) });
    } catch (error) {
      deliver({ number, fault: String(errorFields(error)["stack"] ?? error) });
    }
  };
  const takeFrom = (port: MessagePort): MessagePort => port.on("message", (order: Order) => void take(order, port));
  takeFrom(parent);
}
