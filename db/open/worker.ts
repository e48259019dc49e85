import type { D1Database, DurableObjectNamespace } from "@cloudflare/workers-types";
import { attempting } from "../failure.ts";
import { CONFIRM_SWEEP, STATEMENTS_A_SLICE, STATEMENTS_BESIDE } from "../sql/prune.ts";
import { openD1 } from "../sqlite/d1/open.ts";
import { failureOf } from "../sqlite/dialect.ts";
import { type HistoryObject, openRouted } from "../sqlite/durable/routed.ts";
import type { Store } from "../store.ts";

export { hasRows, isEmpty, openDurable } from "../sqlite/durable/open.ts";
export { afterRemovals, rollUp, sinceRollup } from "../sqlite/durable/rollup.ts";
export type { HistoryObject, ObjectMethod, Streamed } from "../sqlite/durable/routed.ts";

/** The bindings of wrangler.toml in which a Worker stores its history. */
export interface StoreBindings {
  readonly DB: D1Database;
  /** One object per node; DB then holds what concerns all nodes. Absent: DB holds everything. */
  readonly NODES?: DurableObjectNamespace;
}

/** The object of a place: see `placeOf`. */
export const objectAt = <T extends HistoryObject>(nodes: DurableObjectNamespace, place: string): T =>
  nodes.get(nodes.idFromName(place)) as unknown as T;

/** Runs work that reaches for an object. */
export const attempt = attempting(failureOf);

/** The only place where a Worker chooses the implementation of its store. Does no I/O by itself. */
export const openStore = ({ DB, NODES }: StoreBindings): Store =>
  NODES === undefined ? openD1(DB) : openRouted((place) => objectAt(NODES, place), DB);

/** The command that confirms a clock after a leap, so that sweeps continue. */
export const CONFIRM_COMMAND = `wrangler d1 execute DB --remote --command "${CONFIRM_SWEEP}"`;

/** The fewest statements with which a sweep can remove anything. */
export const MIN_SWEEP_STATEMENTS = STATEMENTS_A_SLICE + STATEMENTS_BESIDE;
/** Statements that one sweep may run -> its `maxSlices`. */
export const slicesWithin = (statements: number): number =>
  Math.floor((statements - STATEMENTS_BESIDE) / STATEMENTS_A_SLICE);
