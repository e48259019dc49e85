import { joinPath } from "../../../api/base/input-issue.ts";
import { isObject } from "../../../api/base/own.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { SpecFault } from "../pod.ts";

const MAX_FAULTS = 100;

/** The profile of the kubelet that runs the pods; null: no particular version. */
export type PodVersion = Pick<Profile, "podFields" | "version"> | null;

/** The parts of this daemon that a setting serves. */
export interface Served {
  readonly draDrivers: boolean;
}

/** The faults of one object, each once. */
export class FaultList {
  readonly of: PodVersion;
  readonly serves: Served;
  readonly all: SpecFault[] = [];
  readonly #mistyped = new Set<string>();
  constructor(of: PodVersion, serves: Served) {
    this.of = of;
    this.serves = serves;
  }

  /** Whether more faults would not be reported. */
  get areFull(): boolean {
    return this.all.length >= MAX_FAULTS;
  }
  add(at: string, message: string): void {
    const path = at === "" ? "$" : at;
    if (this.areFull || this.#mistyped.has(path)) return;
    if (!this.all.some((f) => f.path === path && f.message === message)) this.all.push({ path, message });
  }
  /** Reports a value of a wrong type, and nothing else about it. */
  mistyped(path: string, message: string): void {
    this.add(path, message);
    this.#mistyped.add(path === "" ? "$" : path);
  }
}

/** A manifest value with its field path and the list that collects errors. */
export class FieldValue {
  readonly value: unknown;
  readonly path: string;
  readonly #faults: FaultList;
  constructor(value: unknown, path: string, faults: FaultList) {
    // Go reads null as absent.
    this.value = value === null ? undefined : value;
    this.path = path;
    this.#faults = faults;
  }

  get isAbsent(): boolean {
    return this.value === undefined;
  }
  /** Whether the value is absent, or an empty list or text, which Go treats as absent. */
  get isEmpty(): boolean {
    return this.isAbsent || this.value === "" || (Array.isArray(this.value) && this.value.length === 0);
  }
  get keys(): readonly string[] {
    return isObject(this.value) ? Object.keys(this.value) : [];
  }

  /** The fault if the version does not have the field; null: it has. `field`: see `Rule.only`. */
  lacks(field: string | undefined): string | null {
    const { of } = this.#faults;
    if (field === undefined || of === null || of.podFields.has(field)) return null;
    return `kubelet ${of.version} has no such field: remove it`;
  }
  /** Whether a feature is served. */
  serves(what: keyof Served | undefined): boolean {
    return what !== undefined && this.#faults.serves[what];
  }
  /** Whether there are so many faults that more would not be reported. */
  get isHopeless(): boolean {
    return this.#faults.areFull;
  }
  fault(message: string): void {
    this.#faults.add(this.path, message);
  }
  /** Reports a fault in the API server's words: `Invalid value: "x": must ...` */
  invalid(message: string): void {
    this.fault(`Invalid value: ${shown(this.value)}: ${message}`);
  }
  invalids(messages: readonly string[]): void {
    for (const message of messages) this.invalid(message);
  }
  required(message = ""): void {
    this.fault(message === "" ? "Required value" : `Required value: ${message}`);
  }
  duplicate(what: unknown = this.value): void {
    this.fault(`Duplicate value: ${shown(what)}`);
  }

  field(name: string): FieldValue {
    const value = isObject(this.value) && Object.hasOwn(this.value, name) ? this.value[name] : undefined;
    return new FieldValue(value, joinPath(this.path, [name]), this.#faults);
  }
  /** The items; empty if absent; a value that is no list is a fault. */
  items(): readonly FieldValue[] {
    if (this.isAbsent) return [];
    if (!Array.isArray(this.value)) {
      this.#expected("a list");
      return [];
    }
    return this.value.map((item: unknown, i) => new FieldValue(item, joinPath(this.path, [i]), this.#faults));
  }
  isObject(): boolean {
    if (isObject(this.value)) return true;
    this.#expected("an object");
    return false;
  }
  text(): string {
    if (typeof this.value === "string") return this.value;
    if (!this.isAbsent) this.#expected("text");
    return "";
  }
  texts(): readonly string[] {
    return this.items().map((item) => {
      if (item.isAbsent) item.#expected("text");
      return item.text();
    });
  }
  /** The boolean; null: absent, or no boolean. */
  flag(): boolean | null {
    if (typeof this.value === "boolean") return this.value;
    if (!this.isAbsent) this.#expected("true or false");
    return null;
  }
  /** The whole number; null: absent, or no whole number. */
  whole(): number | null {
    if (Number.isSafeInteger(this.value)) return this.value as number;
    if (!this.isAbsent) this.#expected("a whole number");
    return null;
  }
  /** A whole number within a range; the fault has the API server's words. */
  between(least: number, most: number): number | null {
    const n = this.whole();
    if (n !== null && (n < least || n > most)) this.invalid(`must be between ${least} and ${most}, inclusive`);
    return n;
  }
  /** One of `words`, or `absent` if there is no value. */
  choice<W extends string, A extends string>(words: readonly W[], absent: A): W | A {
    const text = this.text();
    if (text === "") return absent;
    const word = words.find((w) => w === text);
    if (word !== undefined) return word;
    const supported = words.filter((w) => w !== "");
    this.fault(`Unsupported value: ${shown(text)}: supported values: ${supported.map(shown).join(", ")}`);
    return absent;
  }

  #expected(what: string): void {
    const quote = what === "text" && typeof this.value !== "object" ? " (in YAML it needs quotes)" : "";
    this.#faults.mistyped(this.path, `expected ${what}, found ${described(this.value)}${quote}`);
  }
}

/** A text as Go quotes it; never a whole manifest. */
export const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "null";
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
};
function described(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `\`${String(value).slice(0, 60)}\``;
}
