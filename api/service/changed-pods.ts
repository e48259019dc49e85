import type { Kind } from "../model/decision.ts";
import { namespacedName, type PlaceReasons } from "../model/forms.ts";
import type { KindSpec, PodPart } from "../model/kind-spec.ts";
import { specOf } from "../model/kinds.ts";
import { type Difference, differences } from "./difference.ts";

/** The pods for which two decisions of a kind, both plain JSON, have different effects: NAMESPACE/NAME. */
export function changedPods(kind: Kind, recorded: unknown, replayed: unknown): readonly string[] {
  const { podPartsOf, hasNoEffect } = specOf(kind);
  if (podPartsOf === undefined) return [];
  const after = byPod(podPartsOf(replayed as never));
  const before = recordedParts(() => byPod(podPartsOf(recorded as never)));
  if (before === null) return [];
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => isOther(differences(before.get(name), after.get(name), hasNoEffect), hasNoEffect));
}

/** Whether some difference has an effect. `all`: as from `differences`, those with an effect first. */
export const isOther = ([first]: readonly Difference[], hasNoEffect: KindSpec["hasNoEffect"]): boolean =>
  first !== undefined && hasNoEffect?.(first) !== true;

/** The reasons of differences that have an effect, for kinds that distinguish them; all reasons if none has. */
export function reasonsOfEffect(
  kind: Kind,
  reasons: readonly PlaceReasons[],
  all: readonly Difference[],
): readonly PlaceReasons[] {
  const { hasNoEffect } = specOf(kind);
  if (hasNoEffect === undefined) return reasons;
  // the path without the name of the list
  const paths = new Set(all.filter((one) => !hasNoEffect(one)).map(({ path }) => path.slice(path.indexOf("["))));
  const found = reasons.flatMap(({ at, because }) => {
    const place = `[${JSON.stringify(at)}]`;
    const own = because.filter(({ field }) => paths.has(place) || paths.has(`${place}.values.${field}`));
    return own.length === 0 ? [] : [{ at, because: own }];
  });
  return found.length === 0 ? reasons : found;
}

/** The recorded parts; null if the decision has another form. Reading a record checks only its outer form. */
function recordedParts<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

function byPod(parts: readonly PodPart[]): ReadonlyMap<string, readonly PodPart[]> {
  const all = new Map<string, PodPart[]>();
  for (const part of parts) {
    if (part.pod === null) continue;
    const name = namespacedName(part.pod);
    const known = all.get(name);
    if (known === undefined) all.set(name, [part]);
    else known.push(part);
  }
  return all;
}
