import type { Reporter, TestModule } from "vitest/node";

/** Prints `N passed, N failed, N skipped` as the run's last line; a file that could not run counts as a failure. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      let failures = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "failed") failures++;
        count[state === "passed" ? "passed" : state === "failed" ? "failed" : "skipped"]++;
      }
      if (failures === 0 && module.state() === "failed") count.failed++;
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
