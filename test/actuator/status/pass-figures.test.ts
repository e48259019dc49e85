import { expect, test } from "vitest";
import type { PassReport } from "../../../actuator/loop.ts";
import { passFigures } from "../../../actuator/status/pass-figures.ts";

test("what a pass came to is told with its own time", () => {
  const report = { at: "2026-11-22T12:00:00.000Z", applied: null, drift: [], differs: [], decidedBy: "here" };
  expect(passFigures(report as unknown as PassReport)).toEqual({
    wrote: 0,
    drift: 0,
    decidedBy: "here",
    cgroupsAt: report.at,
  });
  expect(passFigures(null)).toEqual({ wrote: 0, drift: 0, decidedBy: null, compared: false });
});

test("a pass that could not look at the files has found no drift, and says that it compared nothing", () => {
  const report = { at: "2026-11-22T12:00:00.000Z", applied: null, drift: [], differs: null, decidedBy: null };
  expect(passFigures(report as unknown as PassReport)).toMatchObject({ drift: 0, compared: false });
});
