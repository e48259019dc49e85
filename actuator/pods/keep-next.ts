import type { Result } from "../../api/model/result.ts";
import type { ManagerPorts } from "./manager-ports.ts";

/**
 * Keeps the state files that a decision has the next one be told. Plugins answer while decisions are asked: what they have
 * answered since is not lost by an older text. True: something changed.
 */
export const keepNext = (
  { files, devices }: Pick<ManagerPorts, "files" | "devices">,
  next: unknown,
): Result<boolean, string> => files.keep(devices === undefined ? next : devices.merged(next));
