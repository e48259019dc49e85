/** A copy without the object members that are null; nulls in lists stay, they keep the others' places. */
export function withoutNulls(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(withoutNulls);
  if (typeof v !== "object" || v === null) return v;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(v)) {
    const member = (v as Record<string, unknown>)[key];
    if (member !== null && key !== "__proto__") copy[key] = withoutNulls(member);
  }
  return copy;
}
