// `node test/docs/update.ts [DOCUMENT]` writes the generated pages of the kinds, the error codes and the settings, the
// table of kinds in README, and the output of commands into the documents, except where a document shows only parts of
// the output.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ERRORS_PAGE, errorsPage } from "./errors-page.ts";
import { KINDS_PAGE, kindsPage, withKinds } from "./kinds-page.ts";
import { DOCUMENTS, masked, ROOT, typeAll } from "./sessions.ts";
import { SETTINGS_PAGE, settingsPage } from "./settings-page.ts";

const README = "README.md";
const [only] = process.argv.slice(2);
if (only === undefined || only === KINDS_PAGE) writeFileSync(join(ROOT, KINDS_PAGE), kindsPage());
if (only === undefined || only === ERRORS_PAGE) writeFileSync(join(ROOT, ERRORS_PAGE), errorsPage());
if (only === undefined || only === SETTINGS_PAGE) writeFileSync(join(ROOT, SETTINGS_PAGE), settingsPage());
if (only === undefined || only === README) {
  const path = join(ROOT, README);
  writeFileSync(path, withKinds(readFileSync(path, "utf8")));
}
for (const document of DOCUMENTS.filter((file) => only === undefined || file === only)) {
  const path = join(ROOT, document);
  const lines: (string | null)[] = readFileSync(path, "utf8").split("\n");
  const added = new Map<number, readonly string[]>();
  await typeAll(document, ({ line, text, output }, printed) => {
    if (output.some((one) => one.trim() === "...")) return;
    if (output.map(masked).join("\n") === printed.map(masked).join("\n")) return;
    const first = line - 1 + text.split("\n").length;
    for (const [i] of output.entries()) lines[first + i] = null;
    added.set(
      first - 1,
      printed.map((one) => one.trimEnd()),
    );
    console.log(`${document}:${line}: ${text.split("\n")[0]}`);
  });
  const all = lines.flatMap((one, i) => [...(one === null ? [] : [one]), ...(added.get(i) ?? [])]);
  writeFileSync(path, all.join("\n"));
}
