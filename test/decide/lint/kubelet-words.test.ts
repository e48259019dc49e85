import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import { RECORDED, UNRECORDED } from "../../kit/recorded.ts";

/** Answers of the kubelet's own functions, recorded by test/data/lint/main.go. */
interface Answer {
  readonly name: string;
  readonly configuration: unknown;
  /** Why the file cannot be loaded. */
  readonly load: string | null;
  readonly strict: readonly string[];
  /** The errors of ValidateKubeletConfiguration. */
  readonly errors: readonly string[];
  /** The errors of later functions that read the configuration; the first one of each function. */
  readonly later: readonly string[];
}
const read = (version: string): readonly Answer[] =>
  JSON.parse(readFileSync(join(import.meta.dirname, `../../data/lint/kubelet-${version}.json`), "utf8"));
const ALL = read("1.36.3");
/** The files of other versions contain only the answers that differ. */
function answersOf(version: string): readonly Answer[] {
  const own = new Map(read(version).map((answer) => [answer.name, answer]));
  return ALL.map((answer) => own.get(answer.name) ?? answer);
}
const refusals = (configuration: unknown, profile: Profile): readonly string[] =>
  lintConfiguration(configuration, undefined, profile)
    .filter(({ severity }) => severity === "refuses-start")
    .map(({ message, kubelet }) => (kubelet ? message : `not the kubelet's: ${message}`));
const sorted = (list: Iterable<string>): readonly string[] => [...new Set(list)].sort();

/** A panic about several gates names all of them, in any order. */
function loadFaults(load: string): readonly string[] {
  const [, prefix = "", list] = /^panic: (failed to merge .*? error: )\[(.* is enabled.*)\]$/.exec(load) ?? [];
  if (list === undefined) return [load.replace(/^panic: /, "")];
  return list.split(/(?<=\]), /).map((one) => prefix + one);
}

const TITLE = "lint refusals compared with those recorded from kubelet $release";
test.skip.each(UNRECORDED)(`${TITLE}: none are recorded`, () => {});
describe.each(RECORDED)(TITLE, (profile) => {
  const answers = answersOf(profile.release);
  test("are recorded for many configurations", () => expect(answers.length).toBeGreaterThan(480));
  test.each(answers.filter(({ load }) => load !== null))(
    "$name: the file cannot be loaded, as in the kubelet",
    (answer) => {
      const found = refusals(answer.configuration, profile);
      for (const fault of loadFaults(answer.load ?? "")) expect(found).toContain(fault);
    },
  );
  test.each(answers.filter(({ load }) => load === null))(
    "$name: the refusals are the kubelet's",
    ({ configuration, errors, later }) => {
      const found = refusals(configuration, profile);
      const startOnly = /^(?:unknown policy: |invalid sync frequency)/;
      const asked = found.filter((text) => !startOnly.test(text));
      expect(sorted(asked)).toEqual(sorted([...errors, ...later]));
    },
  );
  test.each(answers.filter(({ strict, load }) => load === null && strict.length > 0))(
    "$name: the unknown fields are the kubelet's",
    (answer) => {
      const reported = lintConfiguration(answer.configuration, undefined, profile).filter(
        ({ code }) => code === "unknown-field",
      );
      const names = reported.map(({ message }) => message.replace("strict decoding error: ", ""));
      expect(`strict decoding error: ${names.join(", ")}`).toBe(answer.strict[0]);
      for (const { severity, kubelet } of reported) expect([severity, kubelet]).toEqual(["error", true]);
    },
  );
});
