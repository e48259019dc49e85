// `npm test`: the type check, the linter and every test; with arguments, only the tests that they name (`npm test -- --project unit PATH`).
import { spawnSync } from "node:child_process";

const args = process.argv.slice(2);
const checks =
  args.length > 0
    ? []
    : [
        ["tsc", "--noEmit"],
        ["biome", "check", "--error-on-warnings", "."],
      ];
for (const [command = "", ...rest] of [...checks, ["vitest", "run", ...args]]) {
  const { status, error } = spawnSync(command, rest, { stdio: "inherit" });
  if (error !== undefined) console.error(`${command}: ${error.message}; run \`npm ci\` first`);
  if (status !== 0) process.exit(status ?? 1);
}
