import { expect, test } from "vitest";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import { driftNotices, passFigures } from "../../../actuator/status/counters.ts";

test("the figures of a pass have the time of that pass", () => {
  const report = { at: "2026-11-22T12:00:00.000Z", applied: null, drift: [], differs: [], decidedBy: "here" };
  expect(passFigures(report as unknown as PassReport)).toEqual({
    wrote: 0,
    drift: 0,
    decidedBy: "here",
    cgroupsAt: report.at,
  });
  expect(passFigures(null)).toEqual({ wrote: 0, drift: 0, decidedBy: null, compared: false });
});

test("a pass that could not read the files reports no drift, and that it compared nothing", () => {
  const report = { at: "2026-11-22T12:00:00.000Z", applied: null, drift: [], differs: null, decidedBy: null };
  expect(passFigures(report as unknown as PassReport)).toMatchObject({ drift: 0, compared: false });
});

test("drifting files are named, and only the first of many", () => {
  const drift = Array.from({ length: 130 }, (_, i) => ({
    path: `/kubepods/pod${i}`,
    file: "cpu.shares",
    actual: "77",
    wanted: "102",
    written: null,
    cause: i === 0 ? ("page_rounding" as const) : ("never_written" as const),
    message: "long",
  }));
  const report = { at: "2026-11-22T12:00:00.000Z", applied: null, drift, differs: [], decidedBy: "here" };
  const { drift: count, drifted } = passFigures(report as unknown as PassReport);
  expect([count, drifted?.length]).toEqual([129, 100]);
  const named = { path: "/kubepods/pod1", file: "cpu.shares", actual: "77", wanted: "102", cause: "never_written" };
  expect(drifted?.[0]).toEqual(named);
  const lines = driftNotices(report as unknown as PassReport).map(({ message }) => message);
  expect(lines).toHaveLength(21);
  expect(lines[0]).toBe("drift: /kubepods/pod1 cpu.shares: found 77, wanted 102 (never_written)");
  expect(lines[20]).toBe("drift: 109 more files have another value than wanted: see `nodewise pods`");
  expect(driftNotices(null)).toEqual([]);
});
