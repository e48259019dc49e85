type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

/** The field of a list's metadata by which it is one page of several; null: it is whole, or no list. kubernetes 1.36: ListMeta. */
export function pageField(list: unknown): "continue" | "remainingItemCount" | null {
  const { continue: next, remainingItemCount: left } = fieldsOf(fieldsOf(list)["metadata"]);
  if (typeof next === "string" && next !== "") return "continue";
  return typeof left === "number" && left > 0 ? "remainingItemCount" : null;
}
