import type { D1Database } from "@cloudflare/workers-types";
import { CONFIRM_SWEEP, STATEMENTS_A_SLICE, STATEMENTS_BESIDE } from "../sql/prune.ts";
import { openD1 } from "../sqlite/d1/open.ts";
import type { Store } from "../store.ts";

/** The bindings of wrangler.toml in which a Worker keeps its history. */
export interface StoreBindings {
  readonly DB: D1Database;
}

/** The one place where a Worker chooses the implementation of its store. Does no I/O by itself. */
export const openStore = ({ DB }: StoreBindings): Store => openD1(DB);

/** The command which says that the clock is right although it has leapt, so that a sweep goes on. */
export const CONFIRM_COMMAND = `wrangler d1 execute DB --remote --command "${CONFIRM_SWEEP}"`;

/** The fewest statements with which a sweep can remove anything. */
export const MIN_SWEEP_STATEMENTS = STATEMENTS_A_SLICE + STATEMENTS_BESIDE;
/** Statements that one sweep may run -> its `maxSlices`. */
export const slicesWithin = (statements: number): number =>
  Math.floor((statements - STATEMENTS_BESIDE) / STATEMENTS_A_SLICE);
