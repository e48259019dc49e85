import { expect, test } from "vitest";
import type { PassReport } from "../../actuator/pass/loop.ts";
import { DRIFT_CAUSES, type Drift, type DriftCause } from "../../actuator/plan/drift.ts";
import { driftTable, passLine } from "../../api/cli/actuator/pass-text.ts";
import { plainPaint } from "../../api/text/style.ts";

const TERMINAL = { columns: 200, paint: plainPaint, write() {}, warn() {} };
const drifted = (cause: DriftCause): Drift => ({
  path: "/kubepods",
  file: "cpu.shares",
  wanted: "5",
  actual: "4",
  written: null,
  cause,
  message: "",
});
const lineOf = (...causes: readonly DriftCause[]): string => {
  const report: PassReport = {
    at: "2026-01-01T00:00:00Z",
    snapshot: null,
    allocatable: null,
    cgroups: { version: 1, driver: "cgroupfs", cgroups: [] } as unknown as NonNullable<PassReport["cgroups"]>,
    decisionId: null,
    decidedBy: "here",
    needs: [],
    drift: causes.map(drifted),
    differs: [],
    skipped: [],
    applied: null,
    problems: [],
    notices: [],
  };
  return passLine(report).replace("2026-01-01T00:00:00Z 0 cgroups decided", "");
};

test("the line of a pass counts files whose value was right before, or never written, and is wrong now", () => {
  expect(lineOf("never_written")).toBe("; 1 file with a wrong value");
  expect(lineOf("other_writer", "never_written")).toBe("; 2 files with a wrong value");
});

test("the line of a pass does not count values first written now, or outdated by the decision", () => {
  expect(lineOf("ours", "outdated", "new_cgroup")).toBe("");
});

test("rounded values are counted separately from wrong ones", () => {
  expect(lineOf("page_rounding")).toBe("; 1 file rounded by the kernel or the runtime");
  expect(lineOf("systemd_rounding", "other_writer", "weight_formula")).toBe(
    "; 1 file with a wrong value; 2 files rounded by the kernel or the runtime",
  );
});

test("every cause of drift is in both the line and the table, or in neither", () => {
  for (const cause of DRIFT_CAUSES)
    expect([cause, lineOf(cause) !== ""]).toEqual([cause, driftTable([drifted(cause)], TERMINAL).includes(cause)]);
});
