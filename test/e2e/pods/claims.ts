import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { claimsDirectory } from "../../../actuator/core/lock.ts";

/**
 * Removes the lock files that killed processes left, as the next process would. Removes all lock files of `processes`.
 */
export function removeClaims(...processes: readonly (number | undefined)[]): void {
  for (const name of readdirSync(claimsDirectory()).filter((one) => one.startsWith("nodewise-claim-"))) {
    const file = join(claimsDirectory(), name);
    const pid = / (\d+) /.exec(textOf(file))?.[1];
    if (pid !== undefined && processes.includes(Number(pid))) rmSync(file, { force: true });
  }
}

/** Other processes create and remove lock files meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
