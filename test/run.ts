// `npm test` runs the type check, the linter and every test; with arguments, it runs only the tests that they name
// (`npm test -- --project unit PATH`).
import { type ChildProcess, spawn } from "node:child_process";

const start = (command: string, ...args: readonly string[]): ChildProcess =>
  spawn(command, args, { stdio: "inherit" }).once("error", ({ message }) =>
    console.error(`${command}: ${message}; run \`npm ci\` first`),
  );

const args = process.argv.slice(2);
const tests = start("vitest", "run", ...args);
const checks =
  args.length > 0
    ? []
    : [
        // more checkers would do some work twice, and the tests already use all processors
        start("tsc", "--noEmit", "--checkers", "1"),
        start("biome", "check", "--error-on-warnings", "."),
      ];
for (const one of [...checks, tests]) {
  one.once("close", (code) => {
    if (code === 0) return;
    process.exitCode = 1;
    // the results of tests are of no use if the code does not compile
    tests.kill("SIGINT");
  });
}
