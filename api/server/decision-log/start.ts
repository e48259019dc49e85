import { type FileHandle, open, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Store } from "../../../db/store.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Log } from "../../observe/log.ts";
import type { LogMetrics } from "../../observe/node-metrics.ts";
import type { Turns } from "../../service/turns.ts";
import { Delivery, type Receiver, type Sent } from "./deliver.ts";

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

const MODE = 0o600;
const NEWLINE = 0x0a;

/**
 * A file with an event a line, for its owner alone. What was taken is on disk. A file that was moved or removed meanwhile is made
 * anew. Errors: the folder is missing, or the file cannot be written.
 */
async function ndjsonFile(path: string): Promise<Result<Receiver, string>> {
  const full = resolve(path);
  const folder = await stat(dirname(full)).catch(() => null);
  if (folder === null || !folder.isDirectory())
    return err(`${path}: there is no folder ${dirname(full)}: make it first`);
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

/** A line that a crash cut off is ended: the next one stands by itself. */
async function openAt(path: string): Promise<FileHandle> {
  const file = await open(path, "a+", MODE);
  const { size } = await file.stat();
  const last = Buffer.alloc(1);
  if (size > 0 && (await file.read(last, 0, 1, size - 1)).bytesRead === 1 && last[0] !== NEWLINE)
    await file.appendFile("\n");
  return file;
}

/** All of it, on disk, or nothing: of a full disk half a line may be left, which is taken away again. */
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
  /** Asked for each request, so that a token may be replaced at any time; null: none. Errors of reading it are told as a failed attempt. */
  readonly token: () => string | null;
}

const TIMEOUT_MS = 10_000;
/** A receiver may not hold the log up for longer. */
const MAX_RETRY_MS = 10 * 60_000;
const packed = promisify(gzip);

/** A receiver of OPA's decision log service API: POST of a JSON array, in gzip. */
function httpReceiver({ url, token }: ReceiverSetting): Receiver {
  return {
    // a query may hold a secret
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
        // its body is of no interest, and the connection goes on only without it
        await response.body?.cancel();
        return sentOf(response);
      } catch (error) {
        return { state: "failed", reason: reasonOf(error) };
      }
    },
    close: async () => {},
  };
}

function sentOf({ ok, status, headers }: Response): Sent {
  if (ok) return { state: "taken" };
  if (status === 413) return { state: "too-large" };
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  const reason = `it answered ${status}`;
  return Number.isFinite(seconds) && seconds >= 0
    ? { state: "failed", reason, retryMs: Math.min(seconds * 1000, MAX_RETRY_MS) }
    : { state: "failed", reason };
}

/** fetch tells what went wrong as a cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no answer within ${TIMEOUT_MS / 1000} s`;
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}
