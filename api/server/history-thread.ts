import { parentPort, workerData } from "node:worker_threads";
import type { StoreFailure } from "../../db/failure.ts";
import { openNode } from "../../db/open-node.ts";
import type { Store } from "../../db/store.ts";
import type { Result } from "../model/result.ts";
import { errorFields } from "../observe/log.ts";

/** The entry of the one thread that writes the history; its first answer, number 0, says whether it could open it. */
export const WRITES = [
  "record",
  "putSnapshot",
  "addResults",
  "writeFacts",
  "createToken",
  "revokeToken",
  "prune",
  "ready",
] as const satisfies readonly (keyof Store)[];
export type Write = (typeof WRITES)[number];

export interface Order {
  readonly number: number;
  readonly method: Write | "close";
  readonly args: readonly unknown[];
}
export type Delivery =
  | { readonly number: number; readonly result: Result<unknown, StoreFailure> }
  | { readonly number: number; readonly fault: string };

if (parentPort !== null && typeof workerData?.historyFile === "string") serve(parentPort, workerData.historyFile);

function serve(port: NonNullable<typeof parentPort>, file: string): void {
  const deliver = (delivery: Delivery): void => port.postMessage(delivery);
  const opened = openNode({ file });
  deliver({ number: 0, result: opened.ok ? { ok: true, value: null } : opened });
  if (!opened.ok) return;
  const store = opened.value;
  port.on("message", async ({ number, method, args }: Order) => {
    if (method === "close") {
      await store.close();
      port.close();
      return;
    }
    const write = store[method] as (...args: readonly unknown[]) => Promise<Result<unknown, StoreFailure>>;
    try {
      deliver({ number, result: await write(...args) });
    } catch (error) {
      deliver({ number, fault: String(errorFields(error)["stack"] ?? error) });
    }
  });
}
