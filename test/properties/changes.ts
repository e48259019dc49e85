import { fromJson, type Json } from "../kit/snapshots.ts";
import type { Draws } from "./draws.ts";

export type Path = readonly (string | number)[];

/** The path of every value within a JSON value. */
export function places(v: unknown, at: Path = [], found: Path[] = []): Path[] {
  if (typeof v !== "object" || v === null) return found;
  for (const [key, member] of Object.entries(v)) {
    const path = [...at, Array.isArray(v) ? Number(key) : key];
    found.push(path);
    places(member, path, found);
  }
  return found;
}
/**
 * A copy in which one place holds another value (`GONE`: the place is removed); the copy shares everything outside that
 * path.
 */
const GONE = Symbol("gone");
export function changed(v: unknown, [key, ...rest]: Path, to: unknown): unknown {
  if (key === undefined) return to;
  if (Array.isArray(v)) {
    const copy = [...v];
    if (rest.length === 0 && to === GONE) copy.splice(Number(key), 1);
    else copy[Number(key)] = changed(v[Number(key)], rest, to);
    return copy;
  }
  const copy = { ...(v as Json) };
  if (rest.length === 0 && to === GONE) delete copy[key];
  else copy[key] = changed(copy[key], rest, to);
  return copy;
}
function nested(depth: number): unknown {
  let v: unknown = "x";
  for (let i = 0; i < depth; i++) v = i % 2 === 0 ? [v] : { a: v };
  return v;
}

const ODD: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  -1e300,
  Number.MAX_SAFE_INTEGER,
  "",
  " ",
  "0",
  "-1",
  "1e999",
  "9".repeat(40),
  "9007199254740991",
];
const ODDER: readonly unknown[] = [
  [],
  {},
  [null],
  [[]],
  { a: 1 },
  "\u0000",
  "../..",
  "constructor",
  "é".repeat(100),
  "x".repeat(100_000),
  fromJson('{"__proto__":{"a":1}}'),
];
/** A value to put in a place: nothing, something nested too deeply, or something unusual. */
export const drawn = (d: Draws): unknown => {
  if (d.chance(5)) return GONE;
  if (d.chance(12)) return nested(1 + d.below(1000));
  return d.pick(d.chance(2) ? ODD : ODDER);
};
