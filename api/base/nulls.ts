/** Nothing that a decision reads lies deeper. */
const DEEPEST = 32;

/** The member that identifies a List; Go writes an empty one as null. */
const ITEMS = "items";

/**
 * The value without object members that are null, except for those that hold a list: `items`, and crictl's `images`.
 * Nulls in lists stay, so that indexes do not change. What has no such member is no copy, but the value itself.
 */
export function withoutNulls(v: unknown, depth = 0, name = ITEMS): unknown {
  if (typeof v !== "object" || v === null || depth > DEEPEST) return v;
  if (Array.isArray(v)) {
    const items = v.map((item) => withoutNulls(item, depth + 1));
    return items.every((item, i) => item === v[i]) ? v : items;
  }
  const fields = v as Record<string, unknown>;
  const names = Object.keys(fields);
  let copy: Record<string, unknown> | undefined;
  for (const key of names) {
    const member = fields[key];
    const isLeft = key === "__proto__" || (member === null && key !== ITEMS && key !== name);
    const without = isLeft ? undefined : withoutNulls(member, depth + 1, key);
    // most hold no null: what came before is copied at the first
    if (isLeft || without !== member)
      copy ??= Object.fromEntries(names.slice(0, names.indexOf(key)).map((n) => [n, fields[n]]));
    if (copy !== undefined && !isLeft) copy[key] = without;
  }
  return copy ?? v;
}
