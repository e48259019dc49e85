/** Nothing that a decision reads lies deeper. */
const DEEPEST = 32;

/** The member that identifies a List; Go writes an empty one as null. */
const ITEMS = "items";

/**
 * A copy without object members that are null, except for those that hold a list: `items`, and crictl's `images`.
 * Nulls in lists stay, so that indexes do not change.
 */
export function withoutNulls(v: unknown, depth = 0, name = ITEMS): unknown {
  if (typeof v !== "object" || v === null || depth > DEEPEST) return v;
  if (Array.isArray(v)) return v.map((item) => withoutNulls(item, depth + 1));
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(v)) {
    const member = (v as Record<string, unknown>)[key];
    if (key === "__proto__" || (member === null && key !== ITEMS && key !== name)) continue;
    copy[key] = withoutNulls(member, depth + 1, key);
  }
  return copy;
}
