import type { Result } from "../../api/model/result.ts";
import { readDeviceCheckpoint } from "./device-checkpoint.ts";
import { NOTHING_HELD, withResponsesOf } from "./devices/held.ts";
import { withCheckpoint } from "./devices/told.ts";
import type { ManagerFiles } from "./manager-files.ts";
import type { ManagerPorts } from "./manager-ports.ts";

/**
 * Keeps the state files that a decision has the next one be told. Plugins answer while decisions are asked, and decisions
 * are not told what they answered: neither is lost by it. True: something changed.
 */
export const keepNext = (
  { files, devices }: Pick<ManagerPorts, "files" | "devices">,
  next: unknown,
): Result<boolean, string> => files.keep(devices === undefined ? answered(files, next) : devices.merged(next));

/** Where no plugins are served, what is held was left by a daemon that did. */
function answered(files: ManagerFiles, next: unknown): unknown {
  const now = readDeviceCheckpoint(files);
  return withCheckpoint(next, (told) => withResponsesOf(told, (now.ok ? now.value : undefined) ?? NOTHING_HELD));
}
