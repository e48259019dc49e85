import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { PROFILES } from "../../api/profiles/index.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const SOURCES = ["api", "db", "actuator"]
  .flatMap((dir) => readdirSync(join(ROOT, dir), { recursive: true, encoding: "utf8" }).map((file) => join(dir, file)))
  .filter((file) => file.endsWith(".ts") && !file.startsWith("api/profiles/"));

/** Many other things have such a name; the daemon has settings of its own; and one follows the machine. */
const OTHERS: ReadonlySet<string> = new Set(["address", "cgroupRoot", "kind", "port", "singleProcessOOMKill"]);
const FIELDS = PROFILES.flatMap(({ fieldNames }) => fieldNames.get("") ?? []).filter((name) => !OTHERS.has(name));
const FIELD = `\\b(?:${[...new Set(FIELDS)].join("|")})\\b(?:"\\])?`;
const LITERAL = "(?:-?\\d|[\"'`[{]|true\\b|false\\b|[A-Z][A-Z0-9_]{2,}\\b)";

const leaves = (value: unknown): readonly unknown[] =>
  typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [value];
const VALUES = [...new Set(PROFILES.flatMap(({ defaults }) => leaves(defaults)))];
/** Neither a round number nor one that counts anything. */
const NUMBERS = VALUES.filter((value) => typeof value === "number")
  .filter((value) => value % 1 !== 0 || (value > 100 && !/^10*$/.test(String(value))))
  .map(String);
/** Neither a word nor a duration that is as good for anything else. */
const TEXTS = VALUES.filter((value) => typeof value === "string" && /^\dm0s$|^\d+Mi$|^unix:|^\/\w+\//.test(value));
const oneOf = (texts: readonly unknown[]): string =>
  texts.map((text) => String(text).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");

/** How a default may stand where it should not. */
const FORMS: readonly (readonly [form: string, pattern: RegExp])[] = [
  ["a field with a value to fall back on", new RegExp(`${FIELD} *(?:\\?\\?|\\|\\|) *${LITERAL}`)],
  ["a field with a value where it is not given", new RegExp(`[{,] *${FIELD}(?:: \\w+)? = ${LITERAL}`)],
  ["a field that is on unless it is off", new RegExp(`${FIELD} *[!=]== *false`)],
  ["the text of a default", new RegExp(`["'\`](?:${oneOf(TEXTS)})["'\`]`)],
];
const NUMBER = new RegExp(`(?<![\\w.])(?:${oneOf(NUMBERS)})(?![\\w.])`);
/** Where it is done as a kubelet does it. */
const KUBELETS = /^api\/decide\/|^actuator\/(?:containerd|gc|lifecycle|machine|pass|pods|stats)\//;
const CONSTANT = /\bDEFAULT_[A-Z_]+(?:: [^=]+)? = ["'`{[\d-]/;

/** Numbers that look like a default and are none. */
const NONE: readonly (readonly [file: string, part: string, what: string])[] = [
  ["api/cli/pods/top.ts", "const HIGH = 0.9;", "from when on a bar is red"],
  ["api/decide/admission/prepare.ts", "const DEFAULT_TOLERATIONS", "the API server's plugin DefaultTolerationSeconds"],
  ["api/decide/cgroups/context.ts", "const DEFAULT_PAGE_SIZE", "a machine's"],
  ["api/decide/lint/thresholds.ts", "const DEFAULT_GRACE_SECONDS", "a pod's: the API server's SetDefaults_PodSpec"],
  ["api/decide/memory/start.ts", "const DEFAULT_PATH", "a place on the disk that no setting moves"],
  ["api/decide/kinds/probes.ts", "const DEFAULT_GRACE_SECONDS", "a pod's: the API server's SetDefaults_PodSpec"],
  ["api/decide/topology/policy.ts", "const DEFAULT_MAX_NODES", "the topology manager's own, behind an option"],
  ["api/decide/topology/policy.ts", "const DEFAULT_OPTIONS", "the topology manager's own"],
  ["api/http/openapi/operation.ts", '"memory.available": "100Mi"', "an example"],
  ["api/ui/decision/decision.ts", "const COLUMNS = 110;", "the width of a table"],
  ["actuator/lifecycle/spec/pod-spec.ts", "const DEFAULT_GRACE", "a pod's: the API server's SetDefaults_PodSpec"],
  ["actuator/probes/dns/names.ts", "export const systemNames", "of the machine, whose names a probe asks"],
];

const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, "")).replace(/(?<![:"'`])\/\/.*$/gm, "");
const withoutTexts = (line: string): string => line.replace(/\\./g, "").replace(/"[^"]*"|'[^']*'|`[^`]*`?/g, '""');

/** Every line of a source that has a default in it, each with the form that it has. */
function defaultsIn(file: string, text: string): readonly string[] {
  const isNone = (line: string): boolean => NONE.some(([of, part]) => file === of && line.includes(part));
  return withoutComments(text)
    .split("\n")
    .filter((line) => !isNone(line))
    .flatMap((line) => {
      const forms = FORMS.filter(([, pattern]) => pattern.test(line)).map(([form]) => form);
      if (NUMBER.test(withoutTexts(line))) forms.push("the number of a default");
      if (KUBELETS.test(file) && CONSTANT.test(line)) forms.push("a constant that is a default");
      return forms.map((form) => `${file}: ${form}: ${line.trim()}`);
    });
}

describe("a default of a KubeletConfiguration stands in a profile, and nowhere else", () => {
  const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
  test("no source has one", () => {
    expect(SOURCES.length).toBeGreaterThan(500);
    expect(SOURCES.flatMap((file) => defaultsIn(file, read(file)))).toEqual([]);
  });
  test("what is excepted is there", () => {
    expect(NONE.filter(([file, part]) => !read(file).includes(part))).toEqual([]);
  });
  test.each([
    ["const most = config.maxPods ?? 110;", ["a field with a value to fall back on", "the number of a default"]],
    ["const most = configuration?.podsPerCore || 0;", ["a field with a value to fall back on"]],
    ['const set = given["enforceNodeAllocatable"] ?? ["pods"];', ["a field with a value to fall back on"]],
    ["const factor = config.memoryThrottlingFactor ?? FACTOR;", ["a field with a value to fall back on"]],
    ["function f({ evictionMaxPodGracePeriod: most = 0 }: Config) {", ["a field with a value where it is not given"]],
    ["if (config.cgroupsPerQOS !== false) f();", ["a field that is on unless it is off"]],
    ['const conf = "/etc/resolv.conf";', ["the text of a default"]],
    ['const transition = "5m0s";', ["the text of a default"]],
    ["const PORT = 10250;", ["the number of a default"]],
    ["const DEFAULT_HIGH = 85;", ["a constant that is a default"]],
  ])("one is found: %s", (line, forms) => {
    const file = "api/decide/a.ts";
    expect(defaultsIn(file, line)).toEqual(forms.map((form) => `${file}: ${form}: ${line}`));
  });
  test.each([
    "const most = config.maxPods || config.profile.defaults.maxPods;",
    "/** maxPods ?? 110 */",
    "f(); // maxPods ?? 110",
    'throw new Error("such as maxPods: 110, or 10250");',
  ])("none is found: %s", (line) => {
    expect(defaultsIn("api/decide/a.ts", line)).toEqual([]);
  });
});
