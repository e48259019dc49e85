import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ERRORS_PAGE, errorsPage } from "./errors-page.ts";
import { KINDS_PAGE, kindsPage, withKinds } from "./kinds-page.ts";
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

test("docs/reference/errors.md is up to date; `node test/docs/update.ts` writes it", () => {
  expect(readFileSync(join(ROOT, ERRORS_PAGE), "utf8")).toBe(errorsPage());
});
