import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { PROFILES } from "../../api/profiles/index.ts";
import { bytesIn, millisIn } from "../../api/profiles/profile.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const SOURCES = ["api", "db", "actuator"]
  .flatMap((dir) => readdirSync(join(ROOT, dir), { recursive: true, encoding: "utf8" }).map((file) => join(dir, file)))
  .filter((file) => file.endsWith(".ts") && !file.startsWith("api/profiles/"));

/**
 * Names that many other things have too, names of the daemon's own settings, and a field whose default depends on the
 * machine.
 */
const SHARED_NAMES: ReadonlySet<string> = new Set([
  ...[
    "address",
    "cgroupRoot",
    "contentType",
    "effect",
    "enabled",
    "endpoint",
    "format",
    "json",
    "key",
    "kind",
    "limits",
    "mode",
  ],
  ...["options", "port", "priority", "singleProcessOOMKill", "text", "timeAdded", "value"],
]);
const FIELDS = PROFILES.flatMap(({ fieldNames, flags }) => [...fieldNames.values(), Object.keys(flags)].flat()).filter(
  (name) => !SHARED_NAMES.has(name),
);
const FIELD = `\\b(?:${[...new Set(FIELDS)].join("|")})\\b(?:"[\\])])?`;
const NOTHING = '(?:undefined|null|"")';
const LITERAL = "(?:-?\\d|[\"'`[{]|true\\b|false\\b|[A-Z][A-Z0-9_]{2,}\\b)";
const SCALAR = LITERAL.replace("[{", "");

/** Every value in an object, at any depth, with the name of its field. */
const leaves = (value: unknown, name = ""): readonly (readonly [name: string, value: unknown])[] =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([own, below]) => leaves(below, Array.isArray(value) ? name : own))
    : [[name, value]];
const DEFAULTS = PROFILES.flatMap(({ defaults, flags }) => [...leaves(defaults), ...leaves(flags)]);
const VALUES = [...new Set(DEFAULTS.map(([, value]) => value))];
/** The numbers that can be recognised: neither round numbers nor small counts. */
const NUMBERS = VALUES.filter((value) => typeof value === "number")
  .filter((value) => value % 1 !== 0 || (value > 100 && !/^10*$/.test(String(value))))
  .map(String);
/** The texts that can be recognised: neither words nor common durations. */
const TEXTS = VALUES.filter((value) => typeof value === "string" && /^\dm0s$|^\d+Mi$|^unix:|^\/\w+\//.test(value));
const oneOf = (texts: readonly unknown[]): string =>
  texts.map((text) => String(text).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");

/** The numbers that can represent a default in code: a duration in any unit, a quantity in bytes. */
function numbersOf(value: unknown): readonly number[] {
  if (typeof value === "number") return [value];
  if (typeof value !== "string" || !/^\d/.test(value)) return [];
  if (value.endsWith("Mi")) return [bytesIn(value)];
  return /[smh]$/.test(value) ? [1e-3, 1, 1e3, 1e6].map((unit) => millisIn(value) * unit) : [];
}
const NUMBERS_OF = new Map(
  DEFAULTS.filter(([name]) => FIELDS.includes(name)).map(([name, value]) => [name.toLowerCase(), numbersOf(value)]),
);
const PRODUCT = "-?\\d[\\d.]*(?:e\\d+)?n?(?: \\* \\d[\\d.]*n?)*";
const productOf = (text: string): number =>
  text.split(" * ").reduce((product, factor) => product * Number(factor.replace("n", "")), 1);
/** A name beside a number: `maxPods: 110`, `("maxPods", 110)`, `maxPods === 110`, `MAX_PODS = [110]`. */
const NAMED = new RegExp(
  `(\\w+)[\\])]?(?:[:,]|(?:: \\w+)? [!=<>]?==?)\\s+(?:\\[(?=[^,]+\\]))?(${PRODUCT})(?![\\w.])`,
  "g",
);
const fieldOf = (name: string): string => name.replace(/_(?:MS|MICROS|NANOS|SECONDS|BYTES)$/, "").replaceAll("_", "");
const hasNumberOfField = (line: string): boolean =>
  [...line.matchAll(NAMED)].some(([, name = "", number = ""]) =>
    NUMBERS_OF.get(fieldOf(name).toLowerCase())?.includes(productOf(number)),
  );

/** The forms in which a default may be repeated in code. */
const FORMS: readonly (readonly [form: string, pattern: RegExp])[] = [
  ["a field with a value to fall back on", new RegExp(`${FIELD} *(?:\\?\\?|\\|\\|)=? *\\(?${LITERAL}`)],
  ["a field with a value where there is none", new RegExp(`${FIELD} === ${NOTHING}(?: \\?|\\) return) ${SCALAR}`)],
  [
    "a field with a value where there is none",
    new RegExp(`${FIELD} !== ${NOTHING} \\? [^;?:]*(?:\\?\\.[^;?:]*)* : ${SCALAR}`),
  ],
  ["a field with a value where it is not given", new RegExp(`[{,] *${FIELD}(?:: \\w+)? = ${LITERAL}`)],
  ["a field that is on unless it is off", new RegExp(`${FIELD} *[!=]== *false`)],
  ["a schema that fills a field in", new RegExp(`${FIELD}: [^;]*\\.(?:default|prefault|catch)\\(`)],
  ["the text of a default", new RegExp(`["'\`](?:${oneOf(TEXTS)})["'\`]`)],
];
const NUMBER = new RegExp(`(?<![\\w.])(?:${oneOf(NUMBERS)})(?![\\w.])`);
const CONSTANT = /\bDEFAULT_[A-Z_]+(?:: [^=]+)? = ["'`{[\d-]/;

/** Numbers that only look like a default. */
const NONE: readonly (readonly [file: string, part: string, what: string])[] = [
  ["api/retention.ts", "const DEFAULT_RETENTION", "the history's"],
  ["api/server.ts", "const DEFAULT_HOST", "the API's own server"],
  ["api/server.ts", "const DEFAULT_PORT", "the API's own server"],
  ["api/server.ts", "const DEFAULT_LIMITS", "the API's own server"],
  ["api/worker.ts", "const DEFAULT_STATEMENTS", "a sweep's of the history"],
  ["api/cli/cli.ts", "const DEFAULT_STATUS_URL", "the daemon's own server"],
  ["api/cli/token/command.ts", "const DEFAULT_SCOPES", "a token's of the API"],
  ["api/http/body.ts", "const DEFAULT_BYTES_PER_SECOND", "of the API's callers"],
  ["api/http/decision-list.ts", "const DEFAULT_PAGE", "of the API's callers"],
  ["api/http/fleet.ts", "const DEFAULT_HOURS", "of the API's callers"],
  ["api/service/fleet-metrics.ts", "const DEFAULT_METRICS_NODES", "of the API's own metrics"],
  ["api/service/why/throttled.ts", "const NEAR_LIMIT", "from when on use counts as near the limit"],
  ["api/http/replay.ts", "const DEFAULT_REPLAYED", "of the API's callers"],
  ["api/service/export-page.ts", "const DEFAULT_EXPORTED", "of the API's callers"],
  ["api/service/advise/advise-node.ts", "const DEFAULT_SPAN_MS", "of advice's callers"],
  ["api/service/advise/advise-node.ts", "const DEFAULT_LIMIT", "of advice's callers"],
  ["api/service/advise/reserves.ts", "const DEFAULT_PERCENTILE", "of advice's callers"],
  ["api/service/advise/reserves.ts", "const DEFAULT_MARGIN_PERCENT", "of advice's callers"],
  ["api/decide/kinds/probes.ts", "const DEFAULT_START_MS", "a simulated container's"],
  ["db/postgres/open.ts", "const DEFAULT_AGE_MS", "the history's"],
  ["actuator/status/server.ts", "const DEFAULT_ENTRIES", "the daemon's own server"],
  ["actuator/cgroupfs/open.ts", "const DEFAULT_MOUNT_ROOT", "a machine's"],
  ["actuator/client/outbox.ts", "const DEFAULT_BOUNDS", "the outbox's"],
  ["actuator/core/config.ts", "const DEFAULT_EXEC_LIMIT", "a setting of the daemon's alone"],
  ["actuator/core/addresses.ts", "const DEFAULT_STATUS_LISTEN", "the daemon's own server"],
  ["api/cli/pods/top.ts", "const HIGH = 0.9;", "from when on a bar is red"],
  ["api/decide/admission/prepare.ts", "const DEFAULT_TOLERATIONS", "the API server's plugin DefaultTolerationSeconds"],
  ["api/decide/cgroups/context.ts", "const DEFAULT_PAGE_SIZE", "a machine's"],
  ["api/decide/lint/thresholds.ts", "const DEFAULT_GRACE_SECONDS", "a pod's: the API server's SetDefaults_PodSpec"],
  ["api/decide/memory/start.ts", "const DEFAULT_PATH", "a place on the disk that no setting moves"],
  ["api/decide/kinds/probes.ts", "const DEFAULT_GRACE_SECONDS", "a pod's: the API server's SetDefaults_PodSpec"],
  ["api/decide/topology/policy.ts", "const DEFAULT_MAX_NODES", "the topology manager's own, behind an option"],
  ["api/decide/topology/policy.ts", "const DEFAULT_OPTIONS", "the topology manager's own"],
  ["api/documents/kind-examples.ts", '"memory.available": "100Mi"', "an example"],
  ["actuator/lifecycle/spec/pod-spec.ts", "const DEFAULT_GRACE", "a pod's: the API server's SetDefaults_PodSpec"],
  ["actuator/probes/dns/host-resolver.ts", "export const systemNames", "of the machine, whose names a probe asks"],
];

const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, "")).replace(/(?<![:"'`])\/\/.*$/gm, "");
/** The text with each statement on one line, and with each number in one spelling. */
const oneLineEach = (text: string): string =>
  text
    .replace(/(\?\?=?|\|\||=|\() *\n\s+/g, "$1 ")
    .replace(/\n\s+([?:.])/g, " $1")
    .replace(/\( /g, "(")
    .replace(/(?<=\d)_(?=\d)/g, "");
const withoutTexts = (line: string): string => line.replace(/\\./g, "").replace(/"[^"]*"|'[^']*'|`[^`]*`?/g, '""');

/** Every line of a source that contains a default, with the form of the match. */
function defaultsIn(file: string, text: string): readonly string[] {
  const isNone = (line: string): boolean => NONE.some(([of, part]) => file === of && line.includes(part));
  return oneLineEach(withoutComments(text))
    .split("\n")
    .filter((line) => !isNone(line))
    .flatMap((line) => {
      const forms = FORMS.filter(([, pattern]) => pattern.test(line)).map(([form]) => form);
      if (NUMBER.test(withoutTexts(line))) forms.push("the number of a default");
      if (hasNumberOfField(withoutTexts(line.replace(/["'`](\w+)["'`]/g, "$1"))))
        forms.push("a field with the number of its default");
      if (CONSTANT.test(line)) forms.push("a constant that is a default");
      return forms.map((form) => `${file}: ${form}: ${line.trim()}`);
    });
}

describe("kubelet defaults in the source code", () => {
  const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
  test("are in profiles only", () => {
    expect(SOURCES.length).toBeGreaterThan(500);
    expect(SOURCES.flatMap((file) => defaultsIn(file, read(file)))).toEqual([]);
  });
  test("have exceptions that are all still needed", () => {
    expect(NONE.filter(([file, part]) => !read(file).includes(part))).toEqual([]);
  });
  test.each([
    ["const most = config.maxPods ?? 110;", ["a field with a value to fall back on", "the number of a default"]],
    ["const most = configuration?.podsPerCore || 0;", ["a field with a value to fall back on"]],
    ['const set = given["enforceNodeAllocatable"] ?? ["pods"];', ["a field with a value to fall back on"]],
    ["const factor = config.memoryThrottlingFactor ?? FACTOR;", ["a field with a value to fall back on"]],
    ["function f({ evictionMaxPodGracePeriod: most = 0 }: Config) {", ["a field with a value where it is not given"]],
    ["const most = config.podsPerCore === undefined ? 0 : g();", ["a field with a value where there is none"]],
    ["const most = config.podsPerCore !== undefined ? g() : 0;", ["a field with a value where there is none"]],
    ["if (config.podsPerCore === undefined) return 0;", ["a field with a value where there is none"]],
    ["const verbosity = config.logging?.verbosity ?? 0;", ["a field with a value to fall back on"]],
    ["const form = { maxPods: z.number().default(7) };", ["a schema that fills a field in"]],
    ["const USUAL = { iptablesDropBit: [15] };", ["a field with the number of its default"]],
    ['f(numberOf(config, "containerLogMaxFiles", 5));', ["a field with the number of its default"]],
    ["const CPU_CFS_QUOTA_PERIOD_MICROS = 100_000;", ["a field with the number of its default"]],
    ["f({ cpuCFSQuotaPeriod: 100 });", ["a field with the number of its default"]],
    ["const EVICTION_PRESSURE_TRANSITION_PERIOD = 5 * 60_000;", ["a field with the number of its default"]],
    ["if (config.cgroupsPerQOS !== false) f();", ["a field that is on unless it is off"]],
    ['const conf = "/etc/resolv.conf";', ["the text of a default"]],
    ['const transition = "5m0s";', ["the text of a default"]],
    ["const PORT = 10250;", ["the number of a default"]],
    ["const PORT = 10_250;", ["the number of a default"]],
    ["const DEFAULT_HIGH = 85;", ["a constant that is a default"]],
  ])("are found in a line such as: %s", (line, forms) => {
    const file = "api/decide/a.ts";
    expect(defaultsIn(file, line)).toEqual(forms.map((form) => `${file}: ${form}: ${oneLineEach(line)}`));
  });
  test.each([
    "const most = config.maxPods || config.profile.defaults.maxPods;",
    "const rule = [containerLogMaxWorkers, [1, MOST]];",
    "const MAX_PODS = 1024;",
    "if (config.reservedSystemCPUs === undefined) return [];",
    "/** maxPods ?? 110 */",
    "f(); // maxPods ?? 110",
    'throw new Error("such as maxPods: 110, or 10250");',
  ])("are not seen in a line such as: %s", (line) => {
    expect(defaultsIn("api/decide/a.ts", line)).toEqual([]);
  });
});
