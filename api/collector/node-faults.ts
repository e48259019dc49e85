import type { ClusterPart } from "../cluster/read.ts";

/** A part of a node that could not be read, or something about it that the API did not accept. */
export interface NodeFault {
  readonly part: ClusterPart | "snapshot" | "decisions" | "outcomes";
  readonly code: string;
  /** A readable line. */
  readonly text: string;
}

/** A missing part counts as back after this many consecutive readings found it; until then it may come and go. */
const SETTLED_POLLS = 5;

interface MissingPart {
  readonly part: NodeFault["part"];
  /** Consecutive readings without the fault. */
  absent: number;
}

/**
 * Reports a node's faults when they begin, when another part is missing, and when they end; a part that comes and goes is reported
 * once.
 */
export class NodeFaults {
  /** Node -> `PART CODE`. */
  readonly #nodes = new Map<string, Map<string, MissingPart>>();

  /**
   * `looked`: called with all faults found when reading a node or some of its parts; `parts`: the parts that were read. Returns
   * the line to report; null if nothing is wrong any more; undefined if nothing is new.
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
      if (faults.length > 0 && one.absent < SETTLED_POLLS) continue;
      known.delete(key);
      // if the part is still missing for another reason, that was reported
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
