import { nearName } from "../../base/near-name.ts";
import { type Fields, isObject } from "../../base/own.ts";
import type { Profile } from "../../profiles/profile.ts";
import { goDuration, goQuantity } from "../eviction/threshold.ts";
import { quote } from "../go/strconv.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { entryField, inOrder, type LintFinding, refusal, suggestDuration } from "./finding.ts";

const KIND = "KubeletConfiguration";
const VERSION = "kubelet.config.k8s.io/v1beta1";
/**
 * The source place in a released kubelet's error about unknown names: where the scheme is created. kubelet 1.36:
 * NewSchemeAndCodecs.
 */
const SCHEME = "pkg/kubelet/apis/config/scheme/scheme.go:33";

/**
 * The finding for an apiVersion or a kind that the kubelet does not accept as a configuration, in its own words. A
 * document with neither is not a file (for example the fields of a request); a recorded snapshot has only the kind.
 * kubelet 1.36: DecodeKubeletConfiguration.
 */
export function headFindings(document: Fields, { version: ofKubelet, behaviour }: Profile): readonly LintFinding[] {
  const wrong = wrongHeadType(document);
  if (wrong !== null) return [wrong];
  const [version, kind] = [textOf(document, "apiVersion"), textOf(document, "kind")];
  if (version === "") return kind === "" || kind === KIND ? [] : [kindAlone(kind)];
  const slashes = version.split("/").length - 1;
  if (slashes > 1) return [wrongVersion(`unexpected GroupVersion string: ${version}`, kind, ofKubelet)];
  if (kind === "") return [versionAlone(version)];
  const registered = version.replace(/^\//, "");
  if (kind === KIND && (registered === VERSION || registered === "kubelet.config.k8s.io/__internal")) return [];
  if (behaviour.otherKinds.get(registered)?.includes(kind) === true) {
    const fault = `failed to cast object to ${KIND}, unexpected type: ${registered}, Kind=${kind}`;
    return [
      refusal("wrong-kind", settingFault("kind", fault), "this is another file of the kubelet: give its configuration"),
    ];
  }
  const what = `no kind ${quote(kind)} is registered for version ${quote(registered)} in scheme ${quote(SCHEME)}`;
  return [registered === VERSION ? wrongKind(what, kind) : wrongVersion(what, kind, ofKubelet)];
}

/**
 * The text of a field: Go matches its name in any case, and the last of several counts. `/` or a group alone is no
 * version.
 */
function textOf(document: Fields, name: string): string {
  const [, value] = members(document, name).findLast(([, given]) => given !== null) ?? [];
  const text = typeof value === "string" ? value : "";
  return name === "apiVersion" && /^[^/]*\/$/.test(text) ? "" : text;
}
const members = (document: Fields, name: string): readonly [string, unknown][] =>
  Object.entries(document).filter(([given]) => given.toLowerCase() === name.toLowerCase());

/** The first of the two fields that is not a text. Go: json.UnmarshalTypeError. */
function wrongHeadType(document: Fields): LintFinding | null {
  for (const [name, value] of Object.entries(document)) {
    const field = ["apiVersion", "kind"].find((known) => known.toLowerCase() === name.toLowerCase());
    if (field === undefined || value === null || typeof value === "string") continue;
    const type = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
    const why = `json: cannot unmarshal ${type} into Go struct field .${field} of type string`;
    const fault = settingFault(name, `failed to decode: couldn't get version/kind; json parse error: ${why}`);
    const meant = field === "kind" ? KIND : VERSION;
    return refusal("wrong-type", fault, `a text: \`${meant}\``, { [name]: meant });
  }
  return null;
}

/**
 * The finding for a drop-in's apiVersion or kind; it needs both and accepts no others; null: they are right. kubelet
 * 1.37: mergeKubeletConfigurations.
 */
export function dropInHead(file: string, document: unknown): LintFinding | null {
  const why = isObject(document) ? wrongDropIn(document) : settingFault("$", "error: this is no object");
  if (why === null) return null;
  const message = `failed to load kubelet dropin file, path: ${file}, ${why.message}`;
  const advice = `each drop-in begins with \`apiVersion: ${VERSION}\` and \`kind: ${KIND}\``;
  const found = refusal("drop-in-refused", settingFault("$", message), advice);
  // the kubelet's own message would contain the whole file
  return { ...found, kubelet: why.field !== "$" };
}

/** The fault of a drop-in's head; with the field `$` the message is not entirely the kubelet's. */
function wrongDropIn(document: Fields): SettingFault | null {
  const wrong = wrongHeadType(document);
  if (wrong !== null) return settingFault(wrong.field, `error: ${wrong.message.replace(/^failed to decode: /, "")}`);
  const [version, kind] = [textOf(document, "apiVersion"), textOf(document, "kind")];
  const slashes = version.split("/").length - 1;
  if (slashes > 1) return settingFault("apiVersion", `error: unexpected GroupVersion string: ${version}`);
  if (kind === "") return settingFault("$", "error: Object 'Kind' is missing");
  if (version === VERSION && kind === KIND) return null;
  return settingFault("kind", `unknown apiVersion/kind: ${slashes === 1 ? version : `/${version}`}, Kind=${kind}`);
}

function wrongVersion(why: string, kind: string, ofKubelet: string): LintFinding {
  const head = { apiVersion: VERSION, ...(kind === KIND ? {} : { kind: KIND }) };
  const advice = `a kubelet of ${ofKubelet} reads its configuration as \`${VERSION}\` alone`;
  const isMeant = isNear(kind) || kind === "";
  return refusal(
    "wrong-api-version",
    settingFault("apiVersion", `failed to decode: ${why}`),
    advice,
    isMeant ? head : null,
  );
}
function wrongKind(why: string, kind: string): LintFinding {
  const fix = isNear(kind) ? { kind: KIND } : null;
  return refusal("wrong-kind", settingFault("kind", `failed to decode: ${why}`), `a kubelet reads a \`${KIND}\``, fix);
}
const isNear = (kind: string): boolean => nearName(kind, [KIND]) !== null;

/** Our own message, since the kubelet's would contain the whole file. */
function versionAlone(version: string): LintFinding {
  const message = `'Kind' is missing: a kubelet reads no file with the apiVersion ${quote(version)} alone`;
  const fault = settingFault("apiVersion", message);
  const fix = { apiVersion: VERSION, kind: KIND };
  return { ...refusal("kind-missing", fault, `add \`kind: ${KIND}\``, fix), kubelet: false };
}
function kindAlone(kind: string): LintFinding {
  const fault = settingFault(
    "kind",
    `'apiVersion' is missing, and the kind ${quote(kind)} is none that a kubelet reads`,
  );
  const fix = isNear(kind) ? { apiVersion: VERSION, kind: KIND } : null;
  return { ...refusal("wrong-kind", fault, `a kubelet reads a \`${KIND}\``, fix), kubelet: false };
}

const LARGEST: Readonly<Record<string, number>> = { int32: 2 ** 31, int64: 2 ** 63 };
const LARGEST_LEVEL = 2 ** 32;
/** Names of list types that have their own. */
const LIST_NAMES: Readonly<Record<string, string>> = { "[]v1.VModuleItem": "v1.VModuleConfiguration" };

/**
 * Values that Go cannot decode into their fields, each with the error with which the kubelet stops; a kubelet reports
 * the first. kubelet 1.36: DecodeKubeletConfiguration.
 */
export function decodeFaults(
  configuration: Readonly<Record<string, unknown>>,
  profile: Profile,
): readonly SettingFault[] {
  return Object.entries(configuration).flatMap(([name, value]) =>
    faultsAt({ field: name, path: name, profile }, value),
  );
}

/** The place of a value. `field`: with list indexes; `path`: without, as in Go's errors. */
interface FieldLocation {
  readonly field: string;
  readonly path: string;
  readonly profile: Profile;
}
const cannotDecode = (field: string, why: string): readonly SettingFault[] => [
  settingFault(field, `failed to decode: ${why}`),
];

function faultsAt(at: FieldLocation, value: unknown): readonly SettingFault[] {
  const { field } = at;
  const declared = at.profile.fields.get(at.path);
  if (declared === undefined) return [];
  const type = declared.replace(/^\*/, "");
  if (type === "v1.Duration") return value === null && declared !== type ? [] : durationFaults(at, value);
  if (value === null) return [];
  // a value that is not a time is reported with the taint, where none is allowed
  if (type === "v1.Time") return typeof value === "string" ? [] : wrongType(at, value, "string");
  if (type === "v1.TimeOrMetaDuration") return flushFaults(at, value);
  if (type === "resource.QuantityValue") return quantityFault(field, value);
  if (type.startsWith("[]")) {
    if (!Array.isArray(value)) return wrongType(at, value, LIST_NAMES[type] ?? type);
    return value.flatMap((item, i) => itemFaults({ ...at, field: `${field}[${i}]` }, item, type.slice(2)));
  }
  if (type === "v1.ResourceList") return quantityFaults(at, value);
  if (!type.startsWith("map[")) return itemFaults(at, value, type);
  if (!isObject(value)) return wrongType(at, value, type);
  const inner = type.slice(type.indexOf("]") + 1);
  return Object.entries(value).flatMap(([name, item]) =>
    itemFaults({ ...at, field: entryField(field, name) }, item, inner),
  );
}

function itemFaults(at: FieldLocation, value: unknown, type: string): readonly SettingFault[] {
  if (at.profile.fieldNames.has(at.path)) {
    if (!isObject(value)) return value === null ? [] : wrongType(at, value, type);
    return Object.entries(value).flatMap(([name, item]) =>
      faultsAt({ ...at, field: `${at.field}.${name}`, path: `${at.path}.${name}` }, item),
    );
  }
  return value === null || isOf(value, type) ? [] : wrongType(at, value, type);
}

function isOf(value: unknown, type: string): boolean {
  if (type === "bool") return typeof value === "boolean";
  if (type === "float64") return typeof value === "number";
  if (type === "[]string") return Array.isArray(value);
  const largest = LARGEST[type];
  if (largest !== undefined)
    return Number.isInteger(value) && (value as number) < largest && (value as number) >= -largest;
  if (type === "v1.VerbosityLevel")
    return Number.isInteger(value) && (value as number) >= 0 && (value as number) < LARGEST_LEVEL;
  // the other types are named texts
  return typeof value === "string";
}

function durationFaults(at: FieldLocation, value: unknown): readonly SettingFault[] {
  if (value !== null && typeof value !== "string") return wrongType(at, value, "string");
  const read = goDuration(value ?? "");
  return read.ok ? [] : cannotDecode(at.field, read.error);
}

function quantityFaults(at: FieldLocation, value: unknown): readonly SettingFault[] {
  if (!isObject(value)) return wrongType(at, value, "v1.ResourceList");
  return Object.entries(value).flatMap(([name, text]) => quantityFault(entryField(at.field, name), text));
}
function quantityFault(field: string, value: unknown): readonly SettingFault[] {
  const read = goQuantity(typeof value === "string" ? value : JSON.stringify(value));
  return read.ok || value === null ? [] : cannotDecode(field, read.error);
}

/**
 * Faults of a flush frequency, where a number means nanoseconds. k8s.io/component-base:
 * TimeOrMetaDuration.UnmarshalJSON.
 */
function flushFaults(at: FieldLocation, value: unknown): readonly SettingFault[] {
  if (typeof value === "string") return durationFaults(at, value);
  if (isOf(value, "int64")) return [];
  const text = JSON.stringify(value);
  const what = typeof value === "number" ? `number ${text}` : kindOf(value, "");
  return cannotDecode(
    at.field,
    `invalid duration ${quote(text)}: json: cannot unmarshal ${what} into Go value of type time.Duration`,
  );
}

/** Go: json.UnmarshalTypeError. */
function wrongType({ field, path, profile }: FieldLocation, value: unknown, type: string): readonly SettingFault[] {
  const above = path.split(".").slice(0, -1).join(".");
  const owner = above === "" ? "KubeletConfiguration" : (profile.fields.get(above) ?? "").replace(/^.*\./, "");
  const { innerStructsNamed } = profile.behaviour;
  const goPath = innerStructsNamed ? path.replace(/\.splitStream$/, ".OutputRoutingOptions.splitStream") : path;
  return cannotDecode(
    field,
    `json: cannot unmarshal ${kindOf(value, type)} into Go struct field ${owner}.${goPath} of type ${type}`,
  );
}

function kindOf(value: unknown, type: string): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  if (typeof value !== "number") return typeof value;
  return type in LARGEST || type === "v1.VerbosityLevel" ? `number ${value}` : "number";
}

/** The intended value of a field or of a map's entry. */
interface SuggestedValue {
  readonly name: string;
  readonly key: string | undefined;
  readonly value: unknown;
}

/**
 * The values that Go cannot decode, each with the intended value if only quotes or a duration's unit are wrong, and
 * all other findings: with the intended values in place, and without the other undecodable ones. `findingsOf`: checks
 * a whole configuration. An intended value that is itself wrong is no fix: both faults are reported.
 */
export function typeFindings(
  unread: readonly SettingFault[],
  document: Fields,
  profile: Profile,
  findingsOf: (readable: Fields) => readonly LintFinding[],
): readonly LintFinding[] {
  const meant = unread.map((fault) => suggestedValue(fault, document, profile));
  const lost = unread.filter((_, i) => meant[i] === null);
  const known = meant.filter((one) => one !== null);
  const beside = findingsOf(readable(patched(document, known), lost));
  // the worst of several findings for a field
  const next = new Map([...inOrder(beside)].reverse().map((finding) => [finding.field, finding]));
  const refused = unread.map((fault, i) => {
    const advice = typeAdvice(fault.message);
    const one = meant[i] ?? null;
    if (one === null) return refusal("wrong-type", fault, advice);
    const then = next.get(fault.field);
    if (then === undefined || then.severity === "note") return refusal("wrong-type", fault, advice, patchOf(one));
    return refusal("wrong-type", fault, `${advice}; and then: ${then.message} (${then.advice})`);
  });
  const fields = new Set(unread.map(({ field }) => field));
  return [...refused, ...beside.filter(({ field }) => !fields.has(field))];
}

/**
 * The document without fields (or map entries) that Go cannot decode; an absent one has its default for the other
 * checks.
 */
export function readable(document: Fields, unread: readonly { readonly field: string }[]): Fields {
  const rest: Record<string, unknown> = { ...document };
  for (const { field } of unread) {
    const [name, key] = nameIn(field) ?? [/^\w+/.exec(field)?.[0] ?? ""];
    if (key === undefined) delete rest[name];
    else {
      const { [key]: _, ...entries } = (rest[name] ?? {}) as Fields;
      rest[name] = entries;
    }
  }
  return rest;
}

/** The name of a field, or of a map and one of its entries; null: the place is deeper. */
function nameIn(field: string): readonly [name: string, key?: string] | null {
  const [, name, entry] = /^(\w+)(?:\[("(?:[^"\\]|\\.)*")\])?$/.exec(field) ?? [];
  if (name === undefined) return null;
  return entry === undefined ? [name] : [name, JSON.parse(entry) as string];
}

function typeAdvice(message: string): string {
  if (message.includes("of type string")) return "put it in quotes: Go reads a text here";
  if (/of type u?int/.test(message)) return "a whole number, without quotes";
  if (message.includes("of type bool")) return "true or false, without quotes";
  if (message.includes("time: ")) return "a duration such as 90s or 1m30s";
  return "give it the form that the kubelet reads";
}

function suggestedValue({ field, message }: SettingFault, document: Fields, profile: Profile): SuggestedValue | null {
  const [name, key] = nameIn(field) ?? [];
  if (name === undefined) return null;
  const value = corrected(key === undefined ? document[name] : (document[name] as Fields)[key], message, profile);
  return value === null ? null : { name, key, value };
}
function corrected(value: unknown, message: string, { fields }: Profile): unknown {
  const type = / of type (\w+)$/.exec(message)?.[1];
  // the kubelet requires a text for a duration, and a number has no unit
  if (typeof value === "number")
    return type === "string" && fields.get(fieldIn(message)) === "map[string]string" ? String(value) : null;
  if (typeof value !== "string") return null;
  if (type === "int32" || type === "int64") return /^-?\d{1,9}$/.test(value) ? Number(value) : null;
  if (type === "bool") return value === "true" || value === "false" ? value === "true" : null;
  return type === undefined ? suggestDuration(value) : null;
}
const fieldIn = (message: string): string => /KubeletConfiguration\.(\w+)/.exec(message)?.[1] ?? "";

const patchOf = ({ name, key, value }: SuggestedValue): unknown => ({
  [name]: key === undefined ? value : { [key]: value },
});

function patched(document: Fields, meant: readonly SuggestedValue[]): Fields {
  const whole = new Map(Object.entries(document));
  const maps = new Map<string, Map<string, unknown>>();
  for (const { name, key, value } of meant) {
    if (key === undefined) {
      whole.set(name, value);
      continue;
    }
    const entries = maps.get(name) ?? new Map(Object.entries(document[name] as Fields));
    maps.set(name, entries.set(key, value));
  }
  for (const [name, entries] of maps) whole.set(name, Object.fromEntries(entries));
  return Object.fromEntries(whole);
}
