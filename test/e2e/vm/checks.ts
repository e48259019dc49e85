/** A check of a job; each check builds on the checks before it. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

const from = performance.now();
/** The time since the job's start, as text. */
export const at = (): string => `${((performance.now() - from) / 1000).toFixed(1)} s`;

/**
 * Runs the checks and prints one line per check, then the number of checks. If a check fails, prints the text of
 * `reportOf`, and the exit code is 1.
 */
export async function runChecks(checks: readonly Check[], reportOf: () => readonly string[]): Promise<void> {
  for (const { name, run } of checks) {
    try {
      await run();
      console.log(`ok   ${name} (${at()})`);
    } catch (error) {
      console.log(`FAIL ${name} (${at()}): ${error instanceof Error ? error.message : String(error)}`);
      process.exitCode = 1;
    }
  }
  if (process.exitCode === 1) console.log(["what the daemon reported:", ...reportOf()].join("\n  "));
  console.log(`${checks.length} checks ran`);
}
