export interface TreeLine<T> {
  readonly item: T;
  /** What stands before the item's label: `│  └─ `. */
  readonly branch: string;
  /** What stands before further lines of the item, so that the drawing goes on: `│     │  `. */
  readonly below: string;
}

/** Draws items as a forest, depth first, each parent's children in the order given. An item whose parent is not there is a root. */
export function treeLines<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  parentOf: (item: T) => string,
): TreeLine<T>[] {
  const keys = new Set(items.map(keyOf));
  const children = new Map<string | undefined, T[]>();
  for (const item of items) {
    const key = parentOf(item);
    const parent = keys.has(key) && key !== keyOf(item) ? key : undefined;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [item]);
    else siblings.push(item);
  }
  const lines: TreeLine<T>[] = [];
  const draw = (item: T, branch: string, indent: string): void => {
    const own = children.get(keyOf(item)) ?? [];
    lines.push({ item, branch, below: own.length > 0 ? `${indent}│  ` : `${indent}   ` });
    for (const [i, child] of own.entries()) {
      const isLast = i === own.length - 1;
      draw(child, `${indent}${isLast ? "└─ " : "├─ "}`, `${indent}${isLast ? "   " : "│  "}`);
    }
  };
  for (const root of children.get(undefined) ?? []) draw(root, "", "");
  return lines;
}
