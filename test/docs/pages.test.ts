import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ERRORS_PAGE, errorsPage } from "./errors-page.ts";
import { KINDS_PAGE, kindsPage } from "./kinds-page.ts";
import { ROOT } from "./sessions.ts";
import { SETTINGS_PAGE, settingsPage } from "./settings-page.ts";

test("docs/reference/settings.md is what the file of the settings says; `node test/docs/update.ts` writes it", () => {
  expect(readFileSync(join(ROOT, SETTINGS_PAGE), "utf8")).toBe(settingsPage());
});

test("docs/reference/kinds.md is what the kinds' specs say; `node test/docs/update.ts` writes it", () => {
  expect(readFileSync(join(ROOT, KINDS_PAGE), "utf8")).toBe(kindsPage());
});

test("docs/reference/errors.md is what the API's table of problems says; `node test/docs/update.ts` writes it", () => {
  expect(readFileSync(join(ROOT, ERRORS_PAGE), "utf8")).toBe(errorsPage());
});
