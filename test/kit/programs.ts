import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { TestContext } from "vitest";

/** Why programs that a test needs are not there, said once; undefined: they are. They must be where CI runs it. */
export function noPrograms(what: string, ...programs: readonly string[]): string | undefined {
  const missing = programs.filter((program) => !hasProgram(program));
  if (missing.length === 0) return undefined;
  const why = `${missing.join(" and ")} not found`;
  if (process.env["CI"] === "true") throw new Error(`CI must run ${what}: ${why}`);
  console.warn(`skipped ${what}: ${why}`);
  return why;
}
function hasProgram(program: string): boolean {
  try {
    execFileSync("which", [program], { stdio: "ignore", env: { PATH: `${process.env["PATH"]}:/usr/sbin` } });
    return true;
  } catch {
    return false;
  }
}

const BROWSERS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"] as const;
/** Where the browser is: `CHROMIUM=/path`, or Debian's. The one without a window to draw takes half the processor time. */
export const CHROMIUM = process.env["CHROMIUM"] ?? BROWSERS.find(existsSync) ?? BROWSERS[0];

/** A test that cannot run here is skipped with its reason printed; in CI it fails, so that nothing is skipped unseen. */
export function skip(context: TestContext, reason: string): never {
  if (process.env["CI"] === "true") throw new Error(`CI must run this test: ${reason}`);
  console.warn(`skipped \`${context.task.name}\`: ${reason}`);
  return context.skip(reason);
}
