import { mkdirSync, readdirSync } from "node:fs";
import { err, ok, type Result } from "../../api/model/result.ts";
import { goErrorText } from "./go-error.ts";
import { containerLogsAt } from "./places.ts";
import type { PodPlaces } from "./ports.ts";

/** `<log directory>/<container>`, made with those above it. Error: the kubelet's words. */
export function makeLogDirectory(places: PodPlaces, container: string): Result<null, string> {
  const directory = containerLogsAt(places, container);
  const made = directory.ok ? makeDirectory(directory.value) : directory;
  return made.ok ? made : err(`create container log directory for container ${container} failed: ${made.error}`);
}

/** Error: what the system refused. */
export function makeDirectory(path: string): Result<null, string> {
  try {
    mkdirSync(path, { recursive: true, mode: 0o755 });
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

/**
 * How often a container was started, from the logs that it left: for one that the runtime has forgotten, so that no log
 * is written over. 0: it left none, or nobody can tell. kubelet 1.36: calcRestartCountByLogDir.
 */
export function restartsByLogs(places: PodPlaces, container: string): number {
  const directory = containerLogsAt(places, container);
  if (!directory.ok) return 0;
  try {
    const counts = readdirSync(directory.value, { withFileTypes: true }).flatMap((entry) => {
      const count = entry.isDirectory() ? undefined : /^(\d+)\.log/.exec(entry.name)?.[1];
      return count === undefined ? [] : [Number(count) + 1];
    });
    return Math.max(0, ...counts);
  } catch (error) {
    goErrorText(error);
    return 0;
  }
}
