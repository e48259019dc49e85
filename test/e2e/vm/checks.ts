/** One of those that a job makes, which go on from each other. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

const from = performance.now();
/** Since the job's start, for a person. */
export const at = (): string => `${((performance.now() - from) / 1000).toFixed(1)} s`;

/** Prints a line a check, and what `reportOf` answers if one failed; then how many ran. The exit code is 1 when one failed. */
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
  if (process.exitCode === 1) console.log(["what the daemon told:", ...reportOf()].join("\n  "));
  console.log(`${checks.length} checks ran`);
}
