import { readdirSync, realpathSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";

/**
 * Removes a container's log and those that it was rotated into (`0.log`, `0.log.20260101-000000.gz`), as the kubelet does
 * before it removes the container. A log outside the directory of pod logs is somebody else's and stays. Errors: what the
 * system answers; a log that is gone is none.
 */
export function removeContainerLog(podLogsDirectory: string, logPath: string): Result<null, string> {
  try {
    const directory = realpathSync(dirname(logPath));
    if (!directory.startsWith(`${realpathSync(podLogsDirectory)}/`)) return ok(null);
    const name = basename(logPath);
    for (const file of readdirSync(directory))
      if (file === name || file.startsWith(`${name}.`)) rmSync(join(directory, file), { force: true });
    return ok(null);
  } catch (e) {
    return (e as NodeJS.ErrnoException).code === "ENOENT" ? ok(null) : err(`log ${logPath}: ${(e as Error).message}`);
  }
}
