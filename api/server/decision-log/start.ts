import { type FileHandle, open, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Store } from "../../../db/store.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { Log } from "../../observe/log.ts";
import type { LogMetrics } from "../../observe/node-metrics.ts";
import type { TaskQueue } from "../../service/task-queue.ts";
import { Delivery, type DeliveryResult, type Receiver } from "./deliver.ts";

/** The receiver of the decision log, and the form of its events. */
export interface DecisionLogSetting {
  readonly to: ReceiverSetting | { readonly file: string };
  /** In addition to `id` and `version`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  /** JSON Pointers to the members to erase from each event. */
  readonly erase: readonly string[];
  readonly maxBytes?: number;
}
const MAX_BYTES = 1024 * 1024;

/** Opens the receiver and starts delivering. Errors: the file or the history cannot be written. */
export async function startDecisionLog(
  { to, labels, version, erase, maxBytes = MAX_BYTES }: DecisionLogSetting,
  ports: { readonly store: Store; readonly log: Log; readonly metrics: LogMetrics; readonly tasks: TaskQueue },
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

const MODE = 0o600;
const NEWLINE = 0x0a;

/**
 * A file with one event per line, accessible to its owner only. Accepted events are on disk. If the file was moved or removed, it
 * is created again. Errors: the folder is missing, or the file cannot be written.
 */
async function ndjsonFile(path: string): Promise<Result<Receiver, string>> {
  const full = resolve(path);
  const folder = await stat(dirname(full)).catch(() => null);
  if (folder === null || !folder.isDirectory())
    return err(`${path}: there is no folder ${dirname(full)}: create it first`);
  let file: FileHandle;
  try {
    file = await openAt(full);
  } catch (error) {
    return err(`${path}: cannot be written (${codeOf(error)})`);
  }
  const isMoved = async (): Promise<boolean> => {
    const [own, there] = await Promise.all([file.stat(), stat(full).catch(() => null)]);
    return there === null || there.ino !== own.ino || there.dev !== own.dev;
  };
  return ok({
    label: full,
    send: async (events) => {
      try {
        if (await isMoved()) {
          const next = await openAt(full);
          await file.close();
          file = next;
        }
        await append(file, `${events.join("\n")}\n`);
        return { state: "taken" };
      } catch (error) {
        return { state: "failed", reason: codeOf(error) };
      }
    },
    close: () => file.close(),
  });
}

/** Opens the file. A line that a crash truncated is ended, so that the next one stands by itself. */
async function openAt(path: string): Promise<FileHandle> {
  const file = await open(path, "a+", MODE);
  const { size } = await file.stat();
  const last = Buffer.alloc(1);
  if (size > 0 && (await file.read(last, 0, 1, size - 1)).bytesRead === 1 && last[0] !== NEWLINE)
    await file.appendFile("\n");
  return file;
}

/** Writes all of the text to disk, or nothing: the half line that a full disk leaves is removed. */
async function append(file: FileHandle, text: string): Promise<void> {
  const { size } = await file.stat();
  try {
    await file.appendFile(text);
    await file.datasync();
  } catch (error) {
    await file.truncate(size).catch(() => {});
    throw error;
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

interface ReceiverSetting {
  readonly url: URL;
  /**
   * Read for each request, so that a token can be replaced at any time; null for none. Errors while reading it count as a failed
   * attempt.
   */
  readonly token: () => string | null;
}

const TIMEOUT_MS = 10_000;
/** The longest pause that a receiver may request. */
const MAX_RETRY_MS = 10 * 60_000;
const packed = promisify(gzip);

/** A receiver of OPA's decision log service API: POST of a JSON array, in gzip. */
function httpReceiver({ url, token }: ReceiverSetting): Receiver {
  return {
    // a query may contain a secret
    label: `${url.origin}${url.pathname}`,
    send: async (events, ended) => {
      try {
        const secret = token();
        const response = await fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "content-encoding": "gzip",
            "user-agent": "nodewise",
            ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
          },
          body: new Uint8Array(await packed(`[${events.join(",")}]`)),
          redirect: "manual",
          signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ended]),
        });
        // the connection can be reused only once the body is read or cancelled
        await response.body?.cancel();
        return sentOf(response);
      } catch (error) {
        return { state: "failed", reason: reasonOf(error) };
      }
    },
    close: async () => {},
  };
}

function sentOf({ ok, status, headers }: Response): DeliveryResult {
  if (ok) return { state: "taken" };
  if (status === 413) return { state: "too-large" };
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  const reason = `it answered ${status}`;
  return Number.isFinite(seconds) && seconds >= 0
    ? { state: "failed", reason, retryMs: Math.min(seconds * 1000, MAX_RETRY_MS) }
    : { state: "failed", reason };
}

/** fetch reports the actual error as a cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no answer within ${TIMEOUT_MS / 1000} s`;
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}
