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
  const copy: Record<string, unknown> = {};
  let isSame = true;
  for (const key of Object.keys(v)) {
    const member = (v as Record<string, unknown>)[key];
    if (key === "__proto__" || (member === null && key !== ITEMS && key !== name)) {
      isSame = false;
      continue;
    }
    const without = withoutNulls(member, depth + 1, key);
    isSame &&= without === member;
    copy[key] = without;
  }
  return isSame ? v : copy;
}
