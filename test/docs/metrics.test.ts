import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./sessions.ts";

/** Every metric that the code below `folder` names. */
const namedIn = (folder: string, except?: string): readonly string[] => {
  const files = globSync(`${folder}/**/*.ts`, { cwd: ROOT }).filter(
    (file) => except === undefined || !file.startsWith(except),
  );
  const texts = files.map((file) => readFileSync(join(ROOT, file), "utf8"));
  return [...new Set(texts.flatMap((text) => text.match(/\bnodewise_[a-z_]+[a-z]\b/g) ?? []))].sort();
};

test.each([
  ["API", "api", "api/collector/"],
  ["collector", "api/collector"],
  ["daemon", "actuator"],
])("docs/reference/metrics.md lists all metrics of the %s and no others", (program, folder, except?: string) => {
  const page = readFileSync(join(ROOT, "docs/reference/metrics.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| \S.* \|$/gm)];
  const listed = rows.filter(([, , of]) => of === program).map(([, name]) => name);
  expect(listed).toEqual(namedIn(folder, except));
});
