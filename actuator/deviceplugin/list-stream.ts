import { type Client, getClientChannel, Metadata, type StatusObject, status } from "@grpc/grpc-js";
import type { DeviceList } from "./device-list.ts";
import { DeviceListReader } from "./device-list-reader.ts";
import { faultOf, nonsense, type PluginCall, type PluginFault } from "./fault.ts";
import type { LookLoad } from "./look-load.ts";
import { LIST_AND_WATCH } from "./protocol.ts";

export interface ListStreamOptions {
  readonly client: Client;
  readonly of: PluginCall;
  /** Devices that the plugin may list. */
  readonly most: () => number;
  /** Of all streams together. */
  readonly load: LookLoad;
  readonly onList: (list: DeviceList) => void;
  /** Told once, unless it is stopped before. */
  readonly onEnd: (fault: PluginFault) => void;
}

/** What is read of one plugin: beyond, its own sending is held up. A list of 4,096 devices has 0.25 MB. */
const BYTES_PER_MS = 2 * 1024;
const BURST_BYTES = 4 * 1024 * 1024;
/** What a message costs beside its bytes: small ones without end are held up too. */
const MESSAGE_BYTES = 2 * 1024;

/**
 * ListAndWatch, a message at a time: the next is asked for when the last is in hand, so that no queue forms here, and a
 * plugin that floods is slowed down by the stream's own window. Bytes are kept, not devices, until a list is due.
 */
export function openListStream({ client, of, most, load, onList, onEnd }: ListStreamOptions): {
  readonly stop: () => void;
} {
  const reader = new DeviceListReader(of.resource);
  let newest: Buffer | undefined;
  let last: Buffer | undefined;
  let timer: NodeJS.Timeout | undefined;
  let resume: NodeJS.Timeout | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;
  let isOver = false;
  const bucket = bucketOf(BURST_BYTES, BYTES_PER_MS);
  const call = getClientChannel(client).createCall(LIST_AND_WATCH, Number.POSITIVE_INFINITY, null, null, null);

  const stop = (): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    clearTimeout(resume);
    newest = last = undefined;
    call.cancelWithStatus(status.CANCELLED, "the node no longer listens");
  };
  const look = (hasWaited: boolean): void => {
    timer = undefined;
    const bytes = newest;
    newest = undefined;
    if (bytes === undefined || last?.equals(bytes) === true) return;
    const began = performance.now();
    last = bytes;
    const list = reader.read(bytes, most);
    if (list.ok) {
      onList(list.value);
      const endedAt = performance.now();
      dueAt = endedAt + load.restAfter(call, endedAt - began, hasWaited);
      return;
    }
    stop();
    onEnd(nonsense(of, list.error));
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

/** Plugins may end their stream with a good word: it is the end all the same. */
const endOf = (of: PluginCall, ended: StatusObject): PluginFault =>
  ended.code === status.OK ? { ...of, code: "ENDED", message: "the plugin ended its stream" } : faultOf(of, ended, 0);

/** How long to wait before the next, in ms. */
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
