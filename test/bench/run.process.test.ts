import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { NODE } from "../cli/run.ts";

const bench = (...args: string[]) => spawnSync(NODE, ["test/bench/run.ts", ...args], { encoding: "utf8" });

test("the benchmark program prints its usage, and refuses an unknown part before measuring", () => {
  const help = bench("--help");
  expect([help.status, help.stderr]).toEqual([0, ""]);
  expect(help.stdout).toMatch(
    /^Usage: npm run bench \[-- PART\.\.\. \[NUMBER\.\.\.\]\]\n\n.*: decisions, managers, .*, soak\nNUMBER: .*\n$/,
  );
  const wrong = bench("decisions", "x");
  expect([wrong.status, wrong.stdout]).toEqual([2, ""]);
  expect(wrong.stderr).toMatch(/^no part x; there are decisions, /);
});
