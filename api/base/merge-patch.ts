import { joinPath } from "./input-issue.ts";
import { type Fields, isObject } from "./own.ts";
import { err, ok, type Result } from "./result.ts";

/**
 * Applies a merge patch (RFC 7396): members of the patch replace the target's, objects are merged, and null removes a
 * member.
 */
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

/**
 * One patch with the effect of `first` and then `second`. Error: the place where none exists, since the first sets
 * something other than an object (or null) and the second sets a member of it.
 */
export function joinedPatch(first: Fields, second: Fields, at: readonly string[] = []): Result<Fields, string> {
  const joined: Record<string, unknown> = { ...first };
  for (const [name, member] of Object.entries(second)) {
    const path = [...at, name];
    const known = Object.hasOwn(first, name) ? first[name] : undefined;
    if (known === undefined || !isObject(member)) joined[name] = member;
    else if (isObject(known)) {
      const inner = joinedPatch(known, member, path);
      if (!inner.ok) return inner;
      joined[name] = inner.value;
    } else return err(joinPath("", path));
  }
  return ok(joined);
}
