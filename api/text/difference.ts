import { isObject } from "../base/own.ts";
import { amountText, fileValueText, humanBytes, isBytes, quantityText, resourceOfSignal } from "./size.ts";
import { printable } from "./style.ts";
import { durationText, timeText } from "./time-text.ts";

/** A place where two answers differ. */
interface ComparedField {
  readonly path: string;
  readonly recorded?: unknown;
  readonly replayed?: unknown;
  /** The resource or the signal that each value is about. */
  readonly resources?: { readonly recorded?: string; readonly replayed?: string };
  /** The sides whose value is omitted because it is too long. */
  readonly omitted?: readonly ("recorded" | "replayed")[];
}

/** `allocatable.memory: 22.1 GiB -> 20.6 GiB`. Printable. */
export const differenceLine = (place: ComparedField): string =>
  `${placeText(place)}: ${differenceTexts(place).join(" -> ")}`;

/** `allocatable.memory`, and `thresholds[6].value (nodefs.available)`, since an index says nothing. Printable. */
export function placeText({ path, resources = {} }: Pick<ComparedField, "path" | "resources">): string {
  const about = resources.recorded ?? resources.replayed;
  const isSame = resources.replayed === undefined || about === resources.replayed;
  const isNamed = about === undefined || !isSame || path.includes(about);
  return printable(isNamed || !/\[\d+\]/.test(path) ? path : `${path} (${about})`);
}

/**
 * Both values for people: `500 MiB`, a time, `default/web` for a pod, `3 entries`. They are exact JSON if requested,
 * or if both would look the same otherwise. Printable; `(none)` without a value, `(long)` for one that is left out.
 * `longest`: the maximum length of a value.
 */
export function differenceTexts(
  { path, recorded, replayed, resources = {}, omitted = [] }: ComparedField,
  isExact = false,
  longest = LONG,
): readonly [recorded: string, replayed: string] {
  const changeText = (a: string, b: string) =>
    [omitted.includes("recorded") ? LEFT_OUT : a, omitted.includes("replayed") ? LEFT_OUT : b] as const;
  const [a, b] = changeText(
    readText(path, recorded, resources.recorded, longest),
    readText(path, replayed, resources.replayed, longest),
  );
  return isExact || a === b ? changeText(exactText(recorded, longest), exactText(replayed, longest)) : [a, b];
}
const LEFT_OUT = "(long)";

/** Both values of a configuration field; an amount with a unit stays as written, `34525Mi`. */
export const fieldTexts = (
  place: ComparedField,
  isExact = false,
  longest = LONG,
): readonly [recorded: string, replayed: string] =>
  differenceTexts(place, isExact || ![place.recorded, place.replayed].some(isBare), longest);
const isBare = (value: unknown): boolean => typeof value === "string" && /^\d+$/.test(value);

/** Characters of a value in a table. */
const LONG = 120;
const clipped = (text: string, longest: number): string =>
  printable(text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text);
const exactText = (value: unknown, longest: number): string => {
  if (value === undefined) return "(none)";
  return clipped(typeof value === "string" && value !== "" ? value : JSON.stringify(value), longest);
};

/** `resource`: from `ComparedPlace.resources`; absent, the member's name may be that of a resource, `allocatable.memory`. */
function readText(path: string, value: unknown, resource: string | undefined, longest: number): string {
  if (value === undefined || value === null) return "(none)";
  const member = /([^.[\]"]+|"[^"]+")\]*$/.exec(path)?.[1]?.replaceAll('"', "") ?? "";
  if (typeof value === "number") return numberText(member, value, resource);
  if (typeof value === "string") {
    const file = CGROUP_FILE.exec(path)?.[1];
    const text = file === undefined ? quantityText(resourceIn(member, resource), value) : fileValueText(file, value);
    return exactText(text, longest);
  }
  return typeof value === "object" ? clipped(shortText(value), longest) : exactText(value, longest);
}

const CGROUP_FILE = /\.files\["([^"]+)"\]\.value$/;

/** Members that hold amounts of the resource that the object around them names. */
const AMOUNTS =
  /^(?:value|quantity|available|capacity|distance|usage|request|aboveRequest|requested|used|insufficient|atMost|less|overhead|others)$/;

const resourceIn = (member: string, resource: string | undefined): string =>
  resourceOfSignal(resource !== undefined && AMOUNTS.test(member) ? resource : member);

function numberText(member: string, value: number, resource: string | undefined): string {
  if (/Bytes$|^freeMemory$/.test(member)) return humanBytes(value);
  if (/(?:At|until)Ms$/.test(member)) return timeText(value);
  if (/InMs$/.test(member) && value < 1000) return "now";
  if (/Ms$/.test(member)) return durationText(value);
  const of = resourceIn(member, resource);
  return of !== member || isBytes(of) ? amountText(of, value) : `${value}`;
}

const NAMES = 3;
/** A list is shown by its names, or by how many there are. */
function shortText(value: object): string {
  if (!Array.isArray(value)) return nameOf(value) ?? `{${Object.keys(value).join(", ")}}`;
  const names = value.map(nameOf);
  if (names.length === 0) return "none";
  if (names.length <= NAMES && names.every((name) => name !== null)) return names.join(", ");
  return names.length === 1 ? "1 entry" : `${names.length} entries`;
}

/** An object's identifying name; null: none. */
function nameOf(value: unknown): string | null {
  if (typeof value === "string" || typeof value === "number") return `${value}`;
  if (!isObject(value)) return null;
  const { namespace, name, pod, threshold, signal, resource, quantity, value: limit } = value;
  if (typeof name === "string" && name !== "") return typeof namespace === "string" ? `${namespace}/${name}` : name;
  for (const inner of [pod, threshold]) if (isObject(inner)) return nameOf(inner);
  if (typeof signal === "string") return typeof limit === "string" ? `${signal}<${limit}` : signal;
  if (typeof resource === "string")
    return typeof quantity === "number" ? `${resource} ${amountText(resource, quantity)}` : resource;
  const own = NAMING.map((member) => value[member]).find((one) => typeof one === "string" && one !== "");
  return typeof own === "string" ? own : null;
}
/** Members that identify an object, the most telling first. */
const NAMING = ["path", "key", "container", "cgroup", "reason", "code", "type", "id", "uid", "message"];
