import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { lintWithDropIns, mergedOver } from "../../../api/decide/lint/drop-ins.ts";
import { parseDocuments } from "../../../api/documents/parse.ts";
import { PROFILES, profileOf } from "../../../api/profiles/index.ts";

/** Answers of the kubelet's own functions, recorded by test/data/lint/drop-ins/main.go. */
interface Answer {
  readonly name: string;
  readonly config: object;
  readonly dropIns: Readonly<Record<string, string>>;
  /** Why the configuration cannot be loaded. */
  readonly load?: string;
  /** The errors of ValidateKubeletConfiguration. */
  readonly errors?: readonly string[];
  /** The fields that differ from an empty configuration; null: the field is absent. */
  readonly changed?: Readonly<Record<string, unknown>>;
}
const FOLDER = "/kubelet.conf.d";
const file = join(import.meta.dirname, "../../data/lint/drop-ins/kubelet-1.37.2.json");
const answers = JSON.parse(readFileSync(file, "utf8")) as readonly Answer[];

const WALK = `failed to walk through kubelet dropin directory "${FOLDER}": `;
const PROFILE = profileOf("1.37");
type Given = Pick<Answer, "config" | "dropIns">;
const read = ({ dropIns }: Given) =>
  Object.entries(dropIns)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => ({ file: `${FOLDER}/${name}`, document: parseDocuments(text, name).documents[0]?.value }));
/** The value as it is recorded: an empty list or object is left out. */
const orNothing = (value: unknown): unknown =>
  value === undefined || ["[]", "{}"].includes(JSON.stringify(value)) ? null : value;
/** A field that has no effect once files are merged, and one that must be absolute. */
const EXCLUDED_FIELDS = ["mergeDefaultEvictionSettings", "podLogsDir"];
const lint = (given: Given) => lintWithDropIns(given.config, read(given), undefined, PROFILE);
const refusals = (answer: Answer) => lint(answer).filter(({ severity }) => severity === "refuses-start");

describe("a folder of drop-ins is merged like the kubelet does", () => {
  test.each(answers.filter(({ load }) => load === undefined))("$name", (answer) => {
    expect(refusals(answer).map(({ message }) => message)).toEqual(answer.errors ?? []);
    const { merged } = mergedOver(answer.config as Readonly<Record<string, unknown>>, read(answer), PROFILE);
    for (const [field, value] of Object.entries(answer.changed ?? {})) {
      if (!EXCLUDED_FIELDS.includes(field))
        expect([field, orNothing(merged[field])]).toEqual([field, orNothing(value)]);
    }
  });
  test.each(answers.filter(({ load }) => load !== undefined))("$name cannot be loaded: $load", (answer) => {
    const [found] = refusals(answer);
    const load = (answer.load ?? "").replace(/^panic: /, "").replace(WALK, "");
    if (found?.kubelet === true) expect(load).toBe(found.message);
    else expect(load.startsWith(found?.message ?? "-")).toBe(true);
  });
});

describe("findings of drop-ins", () => {
  const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  const reportOf = (text: string, config: object = {}) =>
    lint({ config, dropIns: { "a.conf": HEAD + text } }).map(({ code, field }) => `${code} ${field}`);
  test.each<[string, readonly string[]]>([
    ["maxPods: 50", []],
    // the defaults stay, and the entries of the file or a drop-in are added to them
    ["evictionHard: {memory.available: 1Gi}", []],
    ["evictionHard: null", ["eviction-defaults-dropped evictionHard"]],
    ["evictionHard: {nodefs.available: null}", ["eviction-defaults-dropped evictionHard"]],
    // too late to have an effect
    [
      "mergeDefaultEvictionSettings: true\nevictionHard: {nodefs.available: null}",
      ["eviction-defaults-dropped evictionHard"],
    ],
    ["maxPodz: 1", ["unknown-field maxPodz"]],
    ["logging: {verbose: 1}", ["unknown-field logging.verbose"]],
    ["registerWithTaints: [{key: a, efect: b}]", ["unknown-field registerWithTaints[0].efect"]],
  ])("%j", (text, codes) => expect(reportOf(text)).toEqual(codes));
  test("name the file of an unknown field, and do not quote the kubelet where it reports nothing", () => {
    const [found] = lint({ config: {}, dropIns: { "a.conf": `${HEAD}MaxPods: 1\n` } });
    expect(found).toMatchObject({ kubelet: false, field: "MaxPods" });
    expect(found?.message).toBe(`${FOLDER}/a.conf: a KubeletConfiguration of 1.37 has no field MaxPods`);
    expect(found?.advice).toContain("`maxPods`");
  });
  test("quote the kubelet on an unknown field of the main file, even with drop-ins", () => {
    expect(lint({ config: { maxPodz: 1 }, dropIns: {} })).toMatchObject([{ code: "unknown-field", kubelet: true }]);
  });
  test("are none without drop-ins", () => {
    for (const profile of PROFILES) expect(lintWithDropIns({}, [], undefined, profile)).toEqual([]);
  });
});
