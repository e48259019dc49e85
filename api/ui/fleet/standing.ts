import type { FleetRow } from "../../../db/fleet-row.ts";
import type { FleetQuestion, Shows, Sort } from "./question.ts";

/** A node as a row of the fleet. */
export interface Standing extends FleetRow {
  /** 0: none; 1: some; 2: it reclaims; 3: it evicts. Of the newest eviction pass. */
  readonly pressure: number;
  /** Files that were not as decided at the newest pass. */
  readonly drift: number;
  readonly silent: boolean;
}

const PRESSURE: Readonly<Record<string, number>> = { "under-pressure": 1, reclaims: 2, evicts: 3 };
/** Whoever was not heard of for so long may be gone: passes come each few seconds to minutes. */
export const SILENT_MS = 15 * 60_000;

export const standingOf = (row: FleetRow, nowMs: number): Standing => ({
  ...row,
  pressure: PRESSURE[row.latest.eviction?.verdict ?? ""] ?? 0,
  drift: row.report === null ? 0 : row.report.okCount + row.report.failedCount,
  silent: nowMs - row.lastSeenMs > SILENT_MS,
});

export const SHOWN: { readonly [S in Shows]: (node: Standing) => boolean } = {
  all: () => true,
  pressure: (node) => node.pressure > 0,
  refused: (node) => node.refused > 0,
  evicted: (node) => node.evicted > 0,
  drift: (node) => node.drift > 0,
  silent: (node) => node.silent,
};

const VALUE: { readonly [S in Exclude<Sort, "name">]: (node: Standing) => number } = {
  pressure: (node) => node.pressure,
  refused: (node) => node.refused,
  evicted: (node) => node.evicted,
  drift: (node) => node.drift,
  decisions: (node) => node.decisions,
  seen: (node) => node.lastSeenMs,
};

export function named(nodes: readonly Standing[], part: string): readonly Standing[] {
  const wanted = part.toLowerCase();
  return wanted === "" ? nodes : nodes.filter((node) => node.name.toLowerCase().includes(wanted));
}

/** Those that were asked for, in the order that was asked for; equal ones by name. */
export function chosen(nodes: readonly Standing[], { q, show, sort, order }: FleetQuestion): readonly Standing[] {
  const found = named(nodes, q).filter(SHOWN[show]);
  const sign = order === "asc" ? 1 : -1;
  if (sort === "name") return sign === 1 ? found : found.toReversed();
  const value = VALUE[sort];
  return found.toSorted((a, b) => sign * (value(a) - value(b)));
}
