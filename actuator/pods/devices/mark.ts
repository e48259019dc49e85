import type { DevicesPerNuma, PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import type { NameValue } from "../../../api/model/device-decision.ts";

/** On each container that holds devices: which ones, so that a checkpoint that is lost can be made again from what runs. */
export const DEVICES = "nodewise.dev/devices";

/** Resource -> NUMA node -> ids, as JSON. */
export function markOf(entries: readonly PodDevicesEntry[]): NameValue {
  const held = entries.map(({ resourceName, deviceIds }) => [
    resourceName,
    Object.fromEntries([...(deviceIds ?? [])].map(([node, ids]) => [String(node), ids ?? []])),
  ]);
  return { name: DEVICES, value: JSON.stringify(Object.fromEntries(held)) };
}

type Mark = ReadonlyMap<string, DevicesPerNuma>;
const MOST_KNOWN = 512;
/** Each turn reads the marks of all that runs. */
const known = new Map<string, Mark>();

/** By resource. What is no such text tells nothing. */
export function readMark(annotations: Readonly<Record<string, string>>): Mark {
  const text = annotations[DEVICES] ?? "{}";
  const mark = known.get(text) ?? parsed(text);
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(text, mark);
  return mark;
}
function parsed(text: string): Mark {
  try {
    const read: unknown = JSON.parse(text);
    const pairs = Object.entries(read ?? {}).map(([resource, perNuma]) => [resource, perNumaOf(perNuma)] as const);
    return new Map(pairs.filter((pair): pair is readonly [string, DevicesPerNuma] => pair[1] !== null));
  } catch {
    return new Map();
  }
}

function perNumaOf(value: unknown): DevicesPerNuma | null {
  const perNuma = new Map<number, readonly string[]>();
  for (const [key, ids] of Object.entries(value ?? {})) {
    const isList = Array.isArray(ids) && ids.every((id) => typeof id === "string");
    if (!isList || !Number.isSafeInteger(Number(key))) return null;
    perNuma.set(Number(key), ids);
  }
  return perNuma.size === 0 ? null : perNuma;
}
