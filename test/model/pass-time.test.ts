import { expect, test } from "vitest";
import { isBeforeStep, orderOf, type PassTime, passTimeOf } from "../../api/model/pass-time.ts";

const TEN = Date.parse("2026-01-31T10:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const pass = (atMs: number, steppedMs = 0, sinceMs: number | null = null): PassTime => ({ atMs, steppedMs, sinceMs });

test("a snapshot without observedAt has no pass time, and its clock step is 0 unless reported", () => {
  expect(passTimeOf({ clockSteppedMs: 5 })).toBeNull();
  expect(passTimeOf({ observedAt: "2026-01-31T10:00:00Z" })).toEqual(pass(TEN));
  const reported = {
    observedAt: "2026-01-31T10:00:00Z",
    clockSteppedMs: -5,
    clockSteppedSince: "2026-01-31T11:00:00Z",
  };
  expect(passTimeOf(reported)).toEqual(pass(TEN, -5, TEN + HOUR));
});

test.each([
  ["the very same", pass(TEN), TEN, "again"],
  ["the very same, with a step", pass(TEN, -2 * HOUR, TEN + 2 * HOUR), TEN, "again"],
  ["later", pass(TEN + 1), TEN, "later"],
  ["late", pass(TEN - 1), TEN, "late"],
  ["later, the clock set back", pass(TEN - 2 * HOUR + 10, -2 * HOUR, TEN), TEN, "later"],
  ["later, the clock set back, nobody says since when", pass(TEN - 2 * HOUR + 10, -2 * HOUR), TEN, "later"],
  ["late by the old clock", pass(TEN - 2 * HOUR - 10, -2 * HOUR), TEN, "late"],
  ["later, the clock set ahead", pass(TEN + 2 * HOUR + 10, 2 * HOUR, TEN), TEN, "later"],
  ["later than one after the step", pass(TEN - 2 * HOUR + 20, -2 * HOUR, TEN), TEN - 2 * HOUR + 10, "later"],
  ["later than one after the step ahead", pass(TEN + 2 * HOUR + 20, 2 * HOUR, TEN), TEN + 2 * HOUR + 10, "later"],
] as const)("compared with the last pass, a pass is %s", (_, time, knownMs, order) => {
  expect(orderOf(time, knownMs)).toBe(order);
});

test.each([
  ["the pass since which the clock was set back", pass(TEN - 2 * HOUR + 10, -2 * HOUR, TEN), TEN, true],
  ["the pass since which it was set a little", pass(TEN + 4 * MINUTE, -MINUTE, TEN), TEN, true],
  ["one long before", pass(TEN - 2 * HOUR + 10, -2 * HOUR, TEN), TEN - 5 * HOUR, true],
  ["one between that and the step", pass(TEN + 2 * HOUR + 20, 2 * HOUR, TEN), TEN + 10, true],
  ["one after the step back", pass(TEN - 2 * HOUR + 20, -2 * HOUR, TEN), TEN - 2 * HOUR + 10, false],
  ["one after the step ahead", pass(TEN + 2 * HOUR + 20, 2 * HOUR, TEN), TEN + 2 * HOUR + 10, false],
  ["this very pass", pass(TEN, -2 * HOUR, TEN + 2 * HOUR), TEN, false],
  ["one of a clock that was not set", pass(TEN + 1), TEN, false],
])("whether %s was made before the clock step: %#", (_, time, knownMs, isBefore) => {
  expect(isBeforeStep(knownMs, time)).toBe(isBefore);
});
