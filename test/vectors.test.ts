import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DISPUTED } from "./conformance/disputed.ts";
import { difference, runSuite, suiteFiles } from "./conformance/run.ts";
import { SUITES } from "./conformance/suites.ts";

const files = suiteFiles(join(import.meta.dirname, "vectors"));

describe("the kubelet's own answers", () => {
  test("every suite that the project answers has its vectors here", () => {
    expect(files.map((f) => f.suite).sort()).toEqual(Object.keys(SUITES).sort());
  });
  test.each(files)("$suite", async ({ suite, path }) => {
    const result = await runSuite(suite, path);
    expect(result.total).toBeGreaterThan(50);
    // exactly the disputed ones: one more is a fault, one fewer means that the dispute is settled
    expect(result.failures.map((f) => f.name)).toEqual(DISPUTED.filter((d) => d.suite === suite).map((d) => d.name));
  });
  test("the comparison notices a wrong number deep inside", () => {
    expect(difference({ a: { b: [1, 2] } }, { a: { b: [1, 3] } })).toBe("a.b.1: want 2, got 3");
    expect(difference({ a: 1 }, {})).toBe("a: want 1, got undefined");
  });
});
