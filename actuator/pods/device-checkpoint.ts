import type { DeviceCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import type { CheckpointFault } from "../../api/decide/devices/checkpoint-read.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { checkpointOf, textOf } from "./devices/texts.ts";
import { DEVICE_CHECKPOINT, type ManagerFiles } from "./manager-files.ts";

/** Why nothing was taken from the file: the kubelet's reasons, or it cannot be read at all. */
export type DeviceCheckpointFault = CheckpointFault | { readonly code: "unreadable"; readonly message: string };

/**
 * What the node's devices are held by, as kubelet_internal_checkpoint has it; undefined: there is no file. On an error no
 * device counts as held, as in the kubelet, which only logs it. kubelet 1.36: readCheckpoint.
 */
export function readDeviceCheckpoint(files: ManagerFiles): Result<DeviceCheckpoint | undefined, DeviceCheckpointFault> {
  const { assignments, missing } = files.read();
  const text = assignments?.[DEVICE_CHECKPOINT];
  if (text !== undefined) return checkpointOf(text);
  const unread = missing.find(({ path }) => path.endsWith(`/${DEVICE_CHECKPOINT}`));
  return unread === undefined ? ok(undefined) : err({ code: "unreadable", message: `${unread.path}: ${unread.why}` });
}

/** Writes it where it differs (`ManagerFiles.keep`). True: something changed. kubelet 1.36: writeCheckpoint. */
export const keepDeviceCheckpoint = (files: ManagerFiles, checkpoint: DeviceCheckpoint): Result<boolean, string> =>
  files.keep({ assignments: { [DEVICE_CHECKPOINT]: textOf(checkpoint) } });
