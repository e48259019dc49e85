import type { ClusterPart } from "../cluster/read.ts";

/** A part of a node that could not be read, or what the API did not take of it. */
export interface NodeFault {
  readonly part: ClusterPart | "snapshot" | "decisions" | "outcomes";
  readonly code: string;
  /** A line for a person. */
  readonly text: string;
}

/** A part that was missing is there again once so many looks in a row found it: before, it may come and go. */
const SETTLED_LOOKS = 5;

interface MissingPart {
  readonly part: NodeFault["part"];
  /** Looks that did not find it since it was there last. */
  absent: number;
}

/** Tells what is wrong with nodes when it begins, when something else is missing, and when it ends; parts that take turns are told once. */
export class NodeFaults {
  /** Node -> `PART CODE`. */
  readonly #nodes = new Map<string, Map<string, MissingPart>>();

  /**
   * `looked`: all that one look at a node, or at some of its parts, found wrong; `parts`: those that it looked at. Answers the line
   * to tell; null: nothing is wrong any more; undefined: nothing new.
   */
  looked(node: string, parts: readonly NodeFault["part"][], faults: readonly NodeFault[]): string | null | undefined {
    const known = this.#nodes.get(node) ?? new Map<string, MissingPart>();
    const isKnown = known.size > 0;
    let isNew = false;
    for (const { part, code } of faults) {
      const key = `${part} ${code}`;
      isNew ||= !known.has(key);
      known.set(key, { part, absent: 0 });
    }
    for (const [key, one] of known) {
      if (!parts.includes(one.part) || faults.some(({ part, code }) => key === `${part} ${code}`)) continue;
      one.absent++;
      if (faults.length > 0 && one.absent < SETTLED_LOOKS) continue;
      known.delete(key);
      // of a part that is missing for another reason, that was told
      isNew ||= Array.from(known.values()).every(({ part }) => part !== one.part);
    }
    if (known.size > 0) this.#nodes.set(node, known);
    else this.#nodes.delete(node);
    if (known.size === 0) return isKnown ? null : undefined;
    const line = faults.map(({ part, text }) => `${part}: ${text}`).join("; ");
    return isNew && line !== "" ? line : undefined;
  }

  forget(node: string): void {
    this.#nodes.delete(node);
  }
}
