import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { claimsDirectory } from "../../../actuator/core/lock.ts";

/** A process that is killed leaves its claims, which the next one would remove. Of `processes` all go. */
export function removeClaims(...processes: readonly (number | undefined)[]): void {
  for (const name of readdirSync(claimsDirectory()).filter((one) => one.startsWith("nodewise-claim-"))) {
    const file = join(claimsDirectory(), name);
    const pid = / (\d+) /.exec(textOf(file))?.[1];
    if (pid !== undefined && processes.includes(Number(pid))) rmSync(file, { force: true });
  }
}

/** Others come and go meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
