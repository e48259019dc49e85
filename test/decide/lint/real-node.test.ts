import { expect, test } from "vitest";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { captured } from "../../kit/real-node.ts";

test("a kubelet that runs is not told that it does not start", () => {
  const found = lintConfiguration(captured("configz.json"));
  expect(found.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
    "warning eviction-defaults-dropped",
    "note reserve-not-enforced",
    "note reserved-cpu-rounded",
    "note reserve-not-enforced",
  ]);
});
