import { type Document, isMap, isNode, isScalar, isSeq, type LineCounter, type Node } from "yaml";
import type { Place } from "./problem.ts";

export function placeOf(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** Finds where the value at a path of keys and indices stands; it stops at the last node that is there. */
export function placeFinder(document: Document, lines: LineCounter): (path: readonly (string | number)[]) => Place {
  return (path) => {
    let node: Node | null = document.contents;
    for (const step of path) {
      const inner = childOf(node, step);
      if (inner === undefined) break;
      node = inner;
    }
    return placeOf(lines, node?.range?.[0] ?? document.range?.[0] ?? 0);
  };
}

function childOf(node: Node | null, step: string | number): Node | undefined {
  let child: unknown;
  if (isSeq(node)) child = node.items[Number(step)];
  if (isMap(node)) child = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))?.value;
  return isNode(child) ? child : undefined;
}
