import { goDuration } from "../eviction/go-values.ts";
import { goDurationText } from "../go/duration.ts";

export type Members = Readonly<Record<string, unknown>>;

/** A configuration as posted, read as Go reads it. What Go cannot read counts as absent. */
export class Given {
  readonly raw: Members;
  constructor(raw: Members) {
    this.raw = raw;
  }
  has(name: string): boolean {
    return this.raw[name] !== undefined && this.raw[name] !== null;
  }
  number(name: string, absent: number): number {
    const value = this.raw[name];
    return typeof value === "number" ? value : absent;
  }
  text(name: string, absent = ""): string {
    const value = this.raw[name];
    return typeof value === "string" ? value : absent;
  }
  flag(name: string, absent: boolean): boolean {
    const value = this.raw[name];
    return typeof value === "boolean" ? value : absent;
  }
  list(name: string): readonly unknown[] {
    const value = this.raw[name];
    return Array.isArray(value) ? value : [];
  }
  inside(name: string): Given {
    const value = this.raw[name];
    return new Given(typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {});
  }
  /** The entries of a map of texts. */
  texts(name: string): readonly (readonly [string, string])[] {
    return Object.entries(this.inside(name).raw)
      .filter((entry): entry is [string, string] => typeof entry[1] === "string")
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }
  /** Nanoseconds. */
  nanos(name: string, absent: number): number {
    const value = this.raw[name];
    const read = typeof value === "string" ? goDuration(value) : undefined;
    return read?.ok ? read.value.nanos : absent;
  }
}

/** As Go prints a duration. */
export const spanText = (nanos: number): string => goDurationText(BigInt(Math.trunc(nanos)));
export const SECOND = 1e9;
