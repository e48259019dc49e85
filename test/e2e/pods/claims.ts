import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { claimsDirectory } from "../../../actuator/lock.ts";

/** A process that is killed leaves its claim on a cgroup root, which the next one would remove. */
export function removeClaims(cgroupRoot: string): void {
  for (const name of readdirSync(claimsDirectory()).filter((one) => one.startsWith("nodewise-claim-"))) {
    const file = join(claimsDirectory(), name);
    if (textOf(file).includes(` ${cgroupRoot}\n`)) rmSync(file, { force: true });
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
