import type { Place } from "./problem.ts";

/** One document of a file as plain values. */
export interface SourceDocument {
  readonly value: unknown;
  readonly file: string;
  /** Counted from 0; empty documents count too. */
  readonly document: number;
  /** Where the value at a path (`["spec", "containers", 0]`) stands; where it is absent, the nearest one above it. */
  place(path: readonly (string | number)[]): Place;
}
