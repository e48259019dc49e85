import { expect, test } from "vitest";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { captured } from "../../kit/real-node.ts";

test("the /configz of a running kubelet has no finding that refuses the start", () => {
  const found = lintConfiguration(captured("configz.json"));
  expect(found.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
    "warning eviction-defaults-dropped",
    "note reserve-not-enforced",
    "note reserved-cpu-rounded",
    "note reserve-not-enforced",
  ]);
});
