import { afterEach, expect, test } from "vitest";
import { timeIn } from "../../api/ui/replay/question.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const zone = process.env["TZ"];
afterEach(() => {
  if (zone === undefined) delete process.env["TZ"];
  else process.env["TZ"] = zone;
});

test.each([
  ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"],
  ["2026-01-31t12:00:00.5+02:00", "2026-01-31T10:00:00.500Z"],
  ["2026-01-31", "2026-01-31T00:00:00.000Z"],
  ["2026-01-31T12:00", "2026-01-31T12:00:00.000Z"],
  ["2026-01-31 12:00:05", "2026-01-31T12:00:05.000Z"],
  ["2026-01-31 12:00:05 UTC", "2026-01-31T12:00:05.000Z"],
  ["90m", "2026-03-01T10:30:00.000Z"],
  ["1d12h", "2026-02-28T00:00:00.000Z"],
  ["7d", "2026-02-22T12:00:00.000Z"],
  ["0", "2026-03-01T12:00:00.000Z"],
])("%s is parsed as the same time, whatever the server's time zone", (text, wanted) => {
  process.env["TZ"] = "America/New_York";
  expect(new Date(timeIn(text, NOW) ?? 0).toISOString()).toBe(wanted);
});

test.each(["", "yesterday", "24", "2026", "2026-13-01", "2026-01-31T25:00:00Z", "12:00", "7 d", "d"])(
  "%j is not a time",
  (text) => {
    expect(timeIn(text, NOW)).toBeNull();
  },
);
