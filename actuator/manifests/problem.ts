import type { RefusedItem } from "../lifecycle/refused-item.ts";

/** What can be wrong with a file of objects. */
export type ProblemCode =
  | "not-found"
  | "unreadable"
  | "not-a-file"
  | "too-large"
  | "too-many"
  | "not-text"
  | "malformed"
  | "alias-bomb"
  | "too-deep"
  | "not-a-pod"
  | "invalid-pod"
  | "duplicate";

/** Lines and columns count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A fault of a file, or of one document in it (counted from 0). */
export interface ReadProblem {
  readonly code: ProblemCode;
  readonly file: string;
  readonly document?: number;
  readonly place?: Place;
  readonly message: string;
  /** Of an object that is no pod that could be read: who it may be. */
  readonly item?: RefusedItem;
}

/** `pods/web.yaml:12:3: document 1: ...` */
export function problemText(problem: ReadProblem): string {
  const { place, document } = problem;
  const where = place === undefined ? problem.file : `${problem.file}:${place.line}:${place.column}`;
  return document === undefined ? `${where}: ${problem.message}` : `${where}: document ${document}: ${problem.message}`;
}
