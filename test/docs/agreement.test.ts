import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NOT_COMPARABLE, OUTCOME_KINDS } from "../../api/model/outcome.ts";
import { ROOT } from "./sessions.ts";

test("docs/guide/agreement.md lists every kind of outcome and every code in order", () => {
  const page = readFileSync(join(ROOT, "docs/guide/agreement.md"), "utf8");
  const listed = (title: string): readonly string[] => {
    const part = page.split(/^## /m).find((one) => one.startsWith(title)) ?? "";
    return [...part.matchAll(/^\| `([\w-]+)` \| \S/gm)].map(([, name]) => name as string);
  };
  expect(listed("What is compared")).toEqual(OUTCOME_KINDS);
  expect(listed("Why something is not comparable")).toEqual(Object.keys(NOT_COMPARABLE));
});
