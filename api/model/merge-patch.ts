import { isObject } from "./own.ts";

/** RFC 7396: members of the patch take the place of the target's, objects are merged, a null takes a member away. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [name, member] of Object.entries(patch)) {
    // assigned, it would be no member but the prototype
    if (name === "__proto__") continue;
    if (member === null) delete merged[name];
    else merged[name] = mergePatch(Object.hasOwn(merged, name) ? merged[name] : undefined, member);
  }
  return merged;
}
