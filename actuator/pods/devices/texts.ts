import { type DeviceCheckpoint, writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { type CheckpointFault, readCheckpoint } from "../../../api/decide/devices/checkpoint-read.ts";
import { ok, type Result } from "../../../api/model/result.ts";

/** What lies on the disk, what decisions are told of it, and what the last one said. */
const MOST_LATELY = 4;
const texts = new WeakMap<DeviceCheckpoint, string>();
/** Those that were read or written last, the newest first: each is megabytes at worst, and nothing is read back. */
let lately: readonly { readonly text: string; readonly checkpoint: DeviceCheckpoint }[] = [];

/** `writeCheckpoint`, once for each checkpoint. */
export function textOf(checkpoint: DeviceCheckpoint): string {
  const before = texts.get(checkpoint);
  if (before !== undefined) return before;
  const text = writeCheckpoint(checkpoint);
  remember(text, checkpoint);
  return text;
}

/** `readCheckpoint`, or the very checkpoint that the text was made of. */
export function checkpointOf(text: string): Result<DeviceCheckpoint, CheckpointFault> {
  const before = lately.find((one) => one.text === text);
  if (before !== undefined) return ok(before.checkpoint);
  const read = readCheckpoint(text);
  if (read.ok) remember(text, read.value);
  return read;
}

function remember(text: string, checkpoint: DeviceCheckpoint): void {
  texts.set(checkpoint, text);
  lately = [{ text, checkpoint }, ...lately].slice(0, MOST_LATELY);
}
