import { hostname } from "node:os";
import type { Store } from "../../../db/store.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Log } from "../../observe/log.ts";
import type { LogMetrics } from "../../observe/node-metrics.ts";
import type { Turns } from "../../service/turns.ts";
import { Delivery, type Receiver } from "./deliver.ts";
import { ndjsonFile } from "./ndjson-file.ts";
import { httpReceiver, type ReceiverSetting } from "./receiver.ts";

/** Where the decision log goes, and how its events look. */
export interface DecisionLogSetting {
  readonly to: ReceiverSetting | { readonly file: string };
  /** Beside `id` and `version`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  /** JSON Pointers to what is erased of each event. */
  readonly erase: readonly string[];
  readonly maxBytes?: number;
}
const MAX_BYTES = 1024 * 1024;

/** Opens the receiver and begins to deliver. Errors: the file cannot be written, or the history cannot. */
export async function startDecisionLog(
  { to, labels, version, erase, maxBytes = MAX_BYTES }: DecisionLogSetting,
  ports: { readonly store: Store; readonly log: Log; readonly metrics: LogMetrics; readonly turns: Turns },
): Promise<Result<{ close(): Promise<void> }, string>> {
  const opened: Result<Receiver, string> = "url" in to ? ok(httpReceiver(to)) : await ndjsonFile(to.file);
  if (!opened.ok) return err(`--decision-log ${opened.error}`);
  const receiver = opened.value;
  const id = crypto.randomUUID();
  const form = { labels: { id, version, ...labels }, erase };
  const delivery = new Delivery({ ...ports, receiver, form, maxBytes, holder: `${hostname()} ${process.pid} ${id}` });
  const begun = await delivery.begin();
  if (begun.ok) return ok(delivery);
  await receiver.close();
  return begun;
}
