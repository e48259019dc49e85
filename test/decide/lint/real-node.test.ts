import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";

test("a kubelet that runs is not told that it does not start", () => {
  const file = join(import.meta.dirname, "../../data/real-node/configz.json");
  const found = lintConfiguration(JSON.parse(readFileSync(file, "utf8")));
  expect(found.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
    "warning eviction-defaults-dropped",
    "note reserve-not-enforced",
    "note reserved-cpu-rounded",
    "note reserve-not-enforced",
  ]);
});
