import { nearName } from "../../model/near-name.ts";
import { type Fields, isObject } from "../../model/own.ts";
import type { Profile } from "../../profiles/profile.ts";
import { goDuration, goQuantity } from "../eviction/threshold.ts";
import { quote } from "../go/strconv.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { entryField, inOrder, type LintFinding, meantDuration, refusal } from "./finding.ts";

const KIND = "KubeletConfiguration";
const VERSION = "kubelet.config.k8s.io/v1beta1";
/** As a released kubelet names what it knows: after the place where that is made. kubelet 1.36: NewSchemeAndCodecs. */
const SCHEME = "pkg/kubelet/apis/config/scheme/scheme.go:33";

/**
 * An apiVersion or a kind by which a kubelet does not know its file as a configuration, in its own words. What has neither is
 * no file, such as the fields of a request; a recorded snapshot keeps the kind alone. kubelet 1.36: DecodeKubeletConfiguration.
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

/** Go reads a name in any case here, and of several the last; `/` and a group alone are no version. */
function textOf(document: Fields, name: string): string {
  const [, value] = members(document, name).findLast(([, given]) => given !== null) ?? [];
  const text = typeof value === "string" ? value : "";
  return name === "apiVersion" && /^[^/]*\/$/.test(text) ? "" : text;
}
const members = (document: Fields, name: string): readonly [string, unknown][] =>
  Object.entries(document).filter(([given]) => given.toLowerCase() === name.toLowerCase());

/** The first that is no text. Go: json.UnmarshalTypeError. */
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

/** The same of a drop-in, which needs both and takes no other; null: it is one. kubelet 1.37: mergeKubeletConfigurations. */
export function dropInHead(file: string, document: unknown): LintFinding | null {
  const why = isObject(document) ? wrongDropIn(document) : settingFault("$", "error: this is no object");
  if (why === null) return null;
  const message = `failed to load kubelet dropin file, path: ${file}, ${why.message}`;
  const advice = `each drop-in begins with \`apiVersion: ${VERSION}\` and \`kind: ${KIND}\``;
  const found = refusal("drop-in-refused", settingFault("$", message), advice);
  // the kubelet's own words would have the whole file in them
  return { ...found, kubelet: why.field !== "$" };
}

/** `$`: the words are not all of the kubelet's. */
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

/** The kubelet's own words would have the whole file in them. */
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
/** A list that has a name of its own. */
const LIST_NAMES: Readonly<Record<string, string>> = { "[]v1.VModuleItem": "v1.VModuleConfiguration" };

/**
 * Values that Go cannot read into their fields, each in the words with which the kubelet gives up on its file; a kubelet
 * names the first. kubelet 1.36: DecodeKubeletConfiguration.
 */
export function decodeFaults(
  configuration: Readonly<Record<string, unknown>>,
  profile: Profile,
): readonly SettingFault[] {
  return Object.entries(configuration).flatMap(([name, value]) =>
    faultsAt({ field: name, path: name, profile }, value),
  );
}

/** `field`: with the places in lists; `path`: without them, as Go's errors have it. */
interface Place {
  readonly field: string;
  readonly path: string;
  readonly profile: Profile;
}
const cannotDecode = (field: string, why: string): readonly SettingFault[] => [
  settingFault(field, `failed to decode: ${why}`),
];

function faultsAt(at: Place, value: unknown): readonly SettingFault[] {
  const { field } = at;
  const declared = at.profile.fields.get(at.path);
  if (declared === undefined) return [];
  const type = declared.replace(/^\*/, "");
  if (type === "v1.Duration") return value === null && declared !== type ? [] : durationFaults(at, value);
  if (value === null) return [];
  // a value that is no time is reported with the taint, in which none may stand
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

function itemFaults(at: Place, value: unknown, type: string): readonly SettingFault[] {
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
  // the rest are texts under names of their own
  return typeof value === "string";
}

function durationFaults(at: Place, value: unknown): readonly SettingFault[] {
  if (value !== null && typeof value !== "string") return wrongType(at, value, "string");
  const read = goDuration(value ?? "");
  return read.ok ? [] : cannotDecode(at.field, read.error);
}

function quantityFaults(at: Place, value: unknown): readonly SettingFault[] {
  if (!isObject(value)) return wrongType(at, value, "v1.ResourceList");
  return Object.entries(value).flatMap(([name, text]) => quantityFault(entryField(at.field, name), text));
}
function quantityFault(field: string, value: unknown): readonly SettingFault[] {
  const read = goQuantity(typeof value === "string" ? value : JSON.stringify(value));
  return read.ok || value === null ? [] : cannotDecode(field, read.error);
}

/** A number is nanoseconds there. k8s.io/component-base: TimeOrMetaDuration.UnmarshalJSON. */
function flushFaults(at: Place, value: unknown): readonly SettingFault[] {
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
function wrongType({ field, path, profile }: Place, value: unknown, type: string): readonly SettingFault[] {
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

/** The value that was meant: of a field, or of an entry of a map. */
interface Meant {
  readonly name: string;
  readonly key: string | undefined;
  readonly value: unknown;
}

/**
 * The values that Go cannot read, each with the value that was meant where only the quotes or the unit of a duration are wrong, and
 * what is found beside them: with the values that were meant, and without the others. `findingsOf`: checks a whole configuration. A
 * value that has a fault of its own once it can be read is no fix: both faults are told then.
 */
export function typeFindings(
  unread: readonly SettingFault[],
  document: Fields,
  profile: Profile,
  findingsOf: (readable: Fields) => readonly LintFinding[],
): readonly LintFinding[] {
  const meant = unread.map((fault) => meantBy(fault, document, profile));
  const lost = unread.filter((_, i) => meant[i] === null);
  const known = meant.filter((one) => one !== null);
  const beside = findingsOf(readable(mended(document, known), lost));
  // the worst of several at a field
  const next = new Map([...inOrder(beside)].reverse().map((finding) => [finding.field, finding]));
  const refused = unread.map((fault, i) => {
    const advice = typeAdvice(fault.message);
    const one = meant[i] ?? null;
    if (one === null) return refusal("wrong-type", fault, advice);
    const then = next.get(fault.field);
    if (then === undefined || then.severity === "note") return refusal("wrong-type", fault, advice, patchOf(one));
    return refusal("wrong-type", fault, `${advice}; and then: ${then.message} (${then.advice})`);
  });
  const told = new Set(unread.map(({ field }) => field));
  return [...refused, ...beside.filter(({ field }) => !told.has(field))];
}

/** Without fields that Go cannot read, of maps without such entries: one that is not there has its default for the other checks. */
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

/** The name of a field, or of a map and of one of its entries; null: it is deeper inside. */
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

function meantBy({ field, message }: SettingFault, document: Fields, profile: Profile): Meant | null {
  const [name, key] = nameIn(field) ?? [];
  if (name === undefined) return null;
  const value = corrected(key === undefined ? document[name] : (document[name] as Fields)[key], message, profile);
  return value === null ? null : { name, key, value };
}
function corrected(value: unknown, message: string, { fields }: Profile): unknown {
  const type = / of type (\w+)$/.exec(message)?.[1];
  // the kubelet wants a text for a duration, and a number has no unit
  if (typeof value === "number")
    return type === "string" && fields.get(fieldIn(message)) === "map[string]string" ? String(value) : null;
  if (typeof value !== "string") return null;
  if (type === "int32" || type === "int64") return /^-?\d{1,9}$/.test(value) ? Number(value) : null;
  if (type === "bool") return value === "true" || value === "false" ? value === "true" : null;
  return type === undefined ? meantDuration(value) : null;
}
const fieldIn = (message: string): string => /KubeletConfiguration\.(\w+)/.exec(message)?.[1] ?? "";

const patchOf = ({ name, key, value }: Meant): unknown => ({ [name]: key === undefined ? value : { [key]: value } });

function mended(document: Fields, meant: readonly Meant[]): Fields {
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
