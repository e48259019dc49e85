/**
 * The items of a v1.PodList or v1.List, or of a list that says no kind; undefined for what is none. A list that says its
 * kind may hold `null`: an empty slice of Go, which is what a kubelet without pods answers.
 */
export function podItems(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { kind, items } = value as { readonly kind?: unknown; readonly items?: unknown };
  const isList = kind === "PodList" || kind === "List";
  if (isList && items === null) return [];
  return Array.isArray(items) && (isList || kind === undefined) ? items : undefined;
}
