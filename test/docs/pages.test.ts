import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { KIND_SPECS } from "../../api/model/kinds.ts";
import { ERRORS_PAGE, errorsPage } from "./errors-page.ts";
import { KINDS_PAGE, kindsPage, withKinds } from "./kinds-page.ts";
import { PLAIN_MEANINGS } from "./plain-meanings.ts";
import { meaningOf } from "./reason-meanings.ts";
import { ROOT } from "./sessions.ts";
import { SETTINGS_PAGE, settingsPage } from "./settings-page.ts";

test("docs/reference/settings.md is up to date; `node test/docs/update.ts` writes it", () => {
  expect(readFileSync(join(ROOT, SETTINGS_PAGE), "utf8")).toBe(settingsPage());
});

test("docs/reference/kinds.md and README's table are up to date; `node test/docs/update.ts` writes them", () => {
  expect(readFileSync(join(ROOT, KINDS_PAGE), "utf8")).toBe(kindsPage());
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  expect(readme).toContain("| `admission` | ");
  expect(withKinds(readme)).toBe(readme);
});

describe("the meaning of a reason code", () => {
  const codes = new Set<string>(Object.values(KIND_SPECS).flatMap(({ reasons }) => reasons));
  test("is there for every code of every kind", () => {
    expect(codes.size).toBeGreaterThan(150);
    for (const code of codes) expect(meaningOf(code)).toMatch(/\w \S+/);
    expect(meaningOf("quota_from_limit")).toBe("a cpu limit of <milliCpu>m in every <periodMicros> µs");
    expect(meaningOf("stats_older_than_snapshot")).toBe("the stats were taken <ageMs> before the snapshot");
  });
  test("is missing for a code without a sentence", () => {
    expect(() => meaningOf("no_such_code")).toThrow("has no sentence");
  });
  test("is plain only for codes that there are", () => {
    expect(Object.keys(PLAIN_MEANINGS).filter((code) => !codes.has(code))).toEqual([]);
  });
});

test("docs/reference/errors.md is up to date; `node test/docs/update.ts` writes it", () => {
  expect(readFileSync(join(ROOT, ERRORS_PAGE), "utf8")).toBe(errorsPage());
});
