import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import type { StateFiles } from "../../machine/files.ts";
import { checkpointOf, DEVICE_CHECKPOINT, textOf, withEmptyResponses } from "./checkpoint-entries.ts";

const known = new WeakMap<StateFiles, StateFiles>();

/**
 * State files as decisions are told of them, wherever they are made: what plugins answered may be secret, and no decision
 * hangs on it. A checkpoint that cannot be read may hold anything, and counts as none in a kubelet too.
 */
export function redactFiles(files: StateFiles): StateFiles {
  const before = known.get(files);
  if (before !== undefined) return before;
  const told = { ...files, assignments: toldAssignments(files.assignments) };
  known.set(files, told);
  return told;
}

function toldAssignments(assignments: StateFiles["assignments"]): StateFiles["assignments"] {
  const text = assignments?.[DEVICE_CHECKPOINT];
  if (assignments === undefined || text === undefined) return assignments;
  const read = checkpointOf(text);
  if (read.ok) {
    const bare = withEmptyResponses(read.value);
    return bare === read.value ? assignments : { ...assignments, [DEVICE_CHECKPOINT]: textOf(bare) };
  }
  const { [DEVICE_CHECKPOINT]: _, ...rest } = assignments;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/**
 * `next` of a decision with its checkpoint changed, or without one where `change` answers null; anything else of it, and what
 * is no checkpoint, is as it came.
 */
export function withCheckpoint(
  next: unknown,
  change: (checkpoint: DeviceCheckpoint) => DeviceCheckpoint | null,
): unknown {
  const { assignments } = (next ?? {}) as { readonly assignments?: Readonly<Record<string, unknown>> };
  const text = assignments?.[DEVICE_CHECKPOINT];
  if (typeof text !== "string") return next;
  const read = checkpointOf(text);
  if (!read.ok) return next;
  const changed = change(read.value);
  if (changed === read.value) return next;
  if (changed === null) {
    const { [DEVICE_CHECKPOINT]: _, ...rest } = assignments ?? {};
    return { ...(next as object), assignments: rest };
  }
  return { ...(next as object), assignments: { ...assignments, [DEVICE_CHECKPOINT]: textOf(changed) } };
}
