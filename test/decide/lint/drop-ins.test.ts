import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lintWithDropIns, mergedOver } from "../../../api/decide/lint/drop-ins.ts";
import { parseDocuments } from "../../../api/documents/parse.ts";
import { profileOf } from "../../../api/profiles/index.ts";

/** Answers of the functions with which kubelet 1.37.2 merges a folder of drop-ins over its file, and then looks it over. */
interface Answer {
  readonly name: string;
  readonly config: object;
  readonly dropIns: Readonly<Record<string, string>>;
  /** Why it cannot be loaded. */
  readonly load?: string;
  /** By ValidateKubeletConfiguration. */
  readonly errors?: readonly string[];
  /** What is otherwise than without any file; null: not there, or empty. */
  readonly changed?: Readonly<Record<string, unknown>>;
}
const FOLDER = "/kubelet.conf.d";
const file = join(import.meta.dirname, "../../data/lint/drop-ins-1.37.2.json");
const answers = JSON.parse(readFileSync(file, "utf8")) as readonly Answer[];

const WALK = `failed to walk through kubelet dropin directory "${FOLDER}": `;
const PROFILE = profileOf("1.37");
type Given = Pick<Answer, "config" | "dropIns">;
const read = ({ dropIns }: Given) =>
  Object.entries(dropIns)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => ({ file: `${FOLDER}/${name}`, document: parseDocuments(text, name).documents[0]?.value }));
const orNothing = (value: unknown): unknown =>
  value === undefined || ["[]", "{}"].includes(JSON.stringify(value)) ? null : value;
const lint = (given: Given) => lintWithDropIns(given.config, read(given), undefined, PROFILE);
const refusals = (answer: Answer) => lint(answer).filter(({ severity }) => severity === "refuses-start");

describe("a folder of drop-ins is merged as the kubelet does it", () => {
  test.each(answers.filter(({ load }) => load === undefined))("$name: $errors", (answer) => {
    expect(refusals(answer).map(({ message }) => message)).toEqual(answer.errors);
    const { merged } = mergedOver(answer.config as Readonly<Record<string, unknown>>, read(answer), PROFILE);
    for (const [field, value] of Object.entries(answer.changed ?? {})) {
      expect([field, orNothing(merged[field])]).toEqual([field, value]);
    }
  });
  test.each(answers.filter(({ load }) => load !== undefined))("$name cannot be loaded: $load", (answer) => {
    const [found] = refusals(answer);
    const load = (answer.load ?? "").replace(/^panic: /, "").replace(WALK, "");
    if (found?.kubelet === true) expect(load).toBe(found.message);
    else expect(load.startsWith(found?.message ?? "-")).toBe(true);
  });
});
