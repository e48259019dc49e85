import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { TestContext } from "vitest";

/** Why a test cannot run without these programs, printed once; undefined: they exist. In CI they must exist. */
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
/** The browser: `CHROMIUM=/path`, or Debian's. The headless shell, which is preferred, takes half the CPU time. */
export const CHROMIUM = process.env["CHROMIUM"] ?? BROWSERS.find(existsSync) ?? BROWSERS[0];

/**
 * Skips a test that cannot run here and prints the reason; in CI the test fails, so that no test is skipped unnoticed.
 */
export function skip(context: TestContext, reason: string): never {
  if (process.env["CI"] === "true") throw new Error(`CI must run this test: ${reason}`);
  console.warn(`skipped \`${context.task.name}\`: ${reason}`);
  return context.skip(reason);
}
