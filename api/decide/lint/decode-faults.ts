import type { Profile } from "../../profiles/profile.ts";
import { goDuration, goQuantity } from "../eviction/threshold.ts";
import { quote } from "../go/strconv.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { entryField } from "./finding.ts";

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
  // what is no time is told with the taint, in which none may stand
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
  // what is left are texts under names of their own
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
  // a struct inside another, which JSON does not show
  const goPath = path.replace(/\.splitStream$/, ".OutputRoutingOptions.splitStream");
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
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
