// `npm test`: the type check, the linter and every test; with arguments, only the tests that they name (`npm test -- --project unit PATH`).
import { type ChildProcess, spawn } from "node:child_process";

const start = (command: string, ...args: readonly string[]): ChildProcess =>
  spawn(command, args, { stdio: "inherit" }).once("error", ({ message }) =>
    console.error(`${command}: ${message}; run \`npm ci\` first`),
  );

const args = process.argv.slice(2);
const tests = start("vitest", "run", ...args);
// a second checker would check half of what the first has checked once more, beside tests that use all processors
const typeCheck = ["tsc", "--noEmit", "--checkers", "1"] as const;
const checks = args.length > 0 ? [] : [start(...typeCheck), start("biome", "check", "--error-on-warnings", ".")];
for (const one of [...checks, tests]) {
  one.once("close", (code) => {
    if (code === 0) return;
    process.exitCode = 1;
    // nobody wants to wait for the tests of what does not compile
    tests.kill("SIGINT");
  });
}
