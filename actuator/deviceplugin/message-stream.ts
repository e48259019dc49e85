import { type Client, getClientChannel, Metadata, type StatusObject, status } from "@grpc/grpc-js";
import type { Result } from "../../api/base/result.ts";
import type { ListThrottle } from "./device-list.ts";
import { faultOf, invalidAnswer, type PluginCall, type PluginFault } from "./fault.ts";

interface MessageStreamOptions {
  readonly client: Client;
  readonly of: PluginCall;
  /** The method's path; its request is empty. */
  readonly path: string;
  /** The throttle of all streams together. */
  readonly load: ListThrottle;
  /** Reads a message; false: it has nothing new, and cost nothing. An error ends the stream. */
  readonly read: (bytes: Buffer) => Result<boolean, string>;
  /** Called once when the stream ends, unless it was stopped before. */
  readonly onEnd: (fault: PluginFault) => void;
}

/** The rate at which one plugin is read; beyond it, its sending is delayed. A list of 4,096 devices has 0.25 MB. */
const BYTES_PER_MS = 2 * 1024;
const BURST_BYTES = 4 * 1024 * 1024;
/** The cost of a message besides its bytes, so that floods of small messages are delayed too. */
const MESSAGE_BYTES = 2 * 1024;

/**
 * Opens a plugin's stream in which each message replaces the last: the next message is requested after the last was
 * read, so no queue forms, and the stream's own window slows down a plugin that floods. Messages stay bytes until one
 * is due; of those that arrive before, only the newest counts.
 */
export function openMessageStream({ client, of, path, load, read, onEnd }: MessageStreamOptions): {
  readonly stop: () => void;
} {
  let newest: Buffer | undefined;
  let timer: NodeJS.Timeout | undefined;
  let resume: NodeJS.Timeout | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;
  let isOver = false;
  const bucket = bucketOf(BURST_BYTES, BYTES_PER_MS);
  const call = getClientChannel(client).createCall(path, Number.POSITIVE_INFINITY, null, null, null);

  const stop = (): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    clearTimeout(resume);
    newest = undefined;
    call.cancelWithStatus(status.CANCELLED, "the node no longer listens");
  };
  const look = (hasWaited: boolean): void => {
    timer = undefined;
    const bytes = newest;
    newest = undefined;
    if (bytes === undefined) return;
    const began = performance.now();
    const said = read(bytes);
    if (!said.ok) {
      stop();
      onEnd(invalidAnswer(of, said.error));
    } else if (said.value) {
      const endedAt = performance.now();
      dueAt = endedAt + load.restAfter(call, endedAt - began, hasWaited);
    }
  };
  call.start(new Metadata(), {
    onReceiveMetadata: () => undefined,
    onReceiveMessage: (bytes: Buffer) => {
      if (isOver) return;
      newest = bytes;
      const waitMs = dueAt - performance.now();
      if (waitMs <= 0) look(false);
      else timer ??= setTimeout(look, waitMs, true);
      if (isOver) return;
      const heldMs = bucket.take(bytes.length + MESSAGE_BYTES);
      if (heldMs === 0) call.startRead();
      else resume = setTimeout(() => call.startRead(), heldMs);
    },
    onReceiveStatus: (ended: StatusObject) => {
      if (isOver) return;
      clearTimeout(timer);
      look(true);
      if (isOver) return;
      stop();
      onEnd(endOf(of, ended));
    },
  });
  call.sendMessageWithContext({}, Buffer.alloc(0));
  call.halfClose();
  call.startRead();
  return { stop };
}

/** A stream that ends with status OK has ended all the same. */
const endOf = (of: PluginCall, ended: StatusObject): PluginFault =>
  ended.code === status.OK ? { ...of, code: "ENDED", message: "the plugin ended its stream" } : faultOf(of, ended, 0);

/** A token bucket; `take` returns the wait before the next message, in ms. */
function bucketOf(burst: number, perMs: number): { take(amount: number): number } {
  let left = burst;
  let at = performance.now();
  return {
    take: (amount) => {
      const now = performance.now();
      left = Math.min(burst, left + (now - at) * perMs) - amount;
      at = now;
      return left >= 0 ? 0 : Math.ceil(-left / perMs);
    },
  };
}
