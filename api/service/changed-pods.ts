import type { Kind } from "../model/decision.ts";
import type { PodPart } from "../model/kind-spec.ts";
import { specOf } from "../model/kinds.ts";
import { differences } from "./difference.ts";

/** The pods of the node to which two decisions of a kind, plain JSON both, do different things: NAMESPACE/NAME. */
export function changedPods(kind: Kind, recorded: unknown, replayed: unknown): readonly string[] {
  const { podPartsOf } = specOf(kind);
  if (podPartsOf === undefined) return [];
  const after = byPod(podPartsOf(replayed as never));
  const before = recordedParts(() => byPod(podPartsOf(recorded as never)));
  if (before === null) return [];
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => differences(before.get(name), after.get(name)).length > 0);
}

/** Null: the decision is not in the form of now. Of a record only the outermost form is checked when it is read. */
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
    const name = podName(part.pod);
    const known = all.get(name);
    if (known === undefined) all.set(name, [part]);
    else known.push(part);
  }
  return all;
}

export const podName = ({ namespace, name }: NonNullable<PodPart["pod"]>): string => `${namespace}/${name}`;
