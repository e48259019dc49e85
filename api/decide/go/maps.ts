import { byKey } from "../../base/order.ts";
import { jsonText } from "./json.ts";

type Key = string | number | bigint;

/** As Go's encoding/json writes it, which sorts keys as text, numbers too: -1, 0, 10, 2. */
export function mapJson<K extends Key, V>(map: ReadonlyMap<K, V>, show: (value: V) => string): string {
  const keyed = Array.from(map, ([key, value]) => [String(key), value] as const).sort(byKey);
  return `{${keyed.map(([key, value]) => `${jsonText(key)}:${show(value)}`).join(",")}}`;
}

/** Nothing, as spew prints it. */
export const NIL = "<nil>";

/** As spew prints it for hashing, in the order of its keys. */
export function mapDump<K extends Key, V>(map: ReadonlyMap<K, V> | null, show: (value: V) => string): string {
  if (map === null) return NIL;
  const sorted = [...map].sort(byKey);
  return `map[${sorted.map(([key, value]) => `${key}:${show(value)}`).join(" ")}]`;
}
