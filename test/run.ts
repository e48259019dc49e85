// `npm test` runs the type check, the linter and every test; with arguments, it runs only the tests that they name
// (`npm test -- --project unit PATH`).
import { type ChildProcess, spawn } from "node:child_process";
import { projectsOf } from "./projects.ts";

const start = (command: string, ...args: readonly string[]): ChildProcess =>
  spawn(command, args, { stdio: "inherit" }).once("error", ({ message }) =>
    console.error(`${command}: ${message}; run \`npm ci\` first`),
  );

const args = process.argv.slice(2);

const asked = args.flatMap((arg, i) => (arg === "--project" ? [args[i + 1]] : []));
for (const file of args.filter((arg) => /^test\/.*\.test\.ts$/.test(arg))) {
  const [project = "unit"] = projectsOf(file);
  if (asked.length === 0 || asked.includes(project)) continue;
  console.error(`${file} is in the project \`${project}\`: npm test -- --project ${project} ${file}`);
  process.exit(1);
}

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
