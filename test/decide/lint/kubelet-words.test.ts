import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import { profileOf } from "../../../api/profiles/index.ts";

/** Answers of the kubelet's own functions: see test/data/lint/main.go. */
interface Answer {
  readonly name: string;
  readonly configuration: unknown;
  /** Why the file cannot be loaded. */
  readonly load: string | null;
  readonly strict: readonly string[];
  /** By ValidateKubeletConfiguration. */
  readonly errors: readonly string[];
  /** By the functions that read it afterwards; the first of each. */
  readonly later: readonly string[];
}
const file = join(import.meta.dirname, "../../data/lint/kubelet-1.36.3.json");
const answers = JSON.parse(readFileSync(file, "utf8")) as readonly Answer[];

const PROFILE = profileOf("1.36.3");
const refusals = (configuration: unknown): readonly string[] =>
  lintConfiguration(configuration, undefined, PROFILE)
    .filter(({ severity }) => severity === "refuses-start")
    .map(({ message, kubelet }) => (kubelet ? message : `not the kubelet's: ${message}`));
const sorted = (list: Iterable<string>): readonly string[] => [...new Set(list)].sort();

/** A panic of several gates names all of them, in any order. */
function loadFaults(load: string): readonly string[] {
  const [, prefix = "", list] = /^panic: (failed to merge .*? error: )\[(.* is enabled.*)\]$/.exec(load) ?? [];
  if (list === undefined) return [load.replace(/^panic: /, "")];
  return list.split(/(?<=\]), /).map((one) => prefix + one);
}

describe("a refusal is in the words of the kubelet's own functions", () => {
  test("of many configurations", () => expect(answers.length).toBeGreaterThan(380));
  test.each(answers.filter(({ load }) => load !== null))("$name: the file cannot be loaded", (answer) => {
    const found = refusals(answer.configuration);
    for (const fault of loadFaults(answer.load ?? "")) expect(found).toContain(fault);
  });
  test.each(answers.filter(({ load }) => load === null))("$name", ({ configuration, errors, later }) => {
    const found = refusals(configuration);
    const startOnly = /^(?:unknown policy: |invalid sync frequency)/;
    const asked = found.filter((text) => !startOnly.test(text));
    expect(sorted(asked)).toEqual(sorted([...errors, ...later]));
  });
  test.each(answers.filter(({ strict, load }) => load === null && strict.length > 0))(
    "$name: fields that it leaves out",
    (answer) => {
      const told = lintConfiguration(answer.configuration, undefined, PROFILE).filter(
        ({ code }) => code === "unknown-field",
      );
      const names = told.map(({ message }) => message.replace("strict decoding error: ", ""));
      expect(`strict decoding error: ${names.join(", ")}`).toBe(answer.strict[0]);
      for (const { severity, kubelet } of told) expect([severity, kubelet]).toEqual(["error", true]);
    },
  );
});
