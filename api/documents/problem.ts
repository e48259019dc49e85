import { joinPath } from "../model/input-issue.ts";

/** The readable part of a source's item that cannot be run as it is written. */
export interface RefusedItem {
  /** Null, of each: it cannot be read. */
  readonly uid: string | null;
  readonly namespace: string | null;
  readonly name: string | null;
  /** Somebody asked for its end; `graceSeconds` null: the pod's own. Null: nobody did. */
  readonly deletion: { readonly graceSeconds: number | null } | null;
  /** `NAMESPACE/NAME` of the pod that has its uid, where that is another one: then it cannot be right. */
  readonly owner?: string;
}

export interface PodIdentity {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** The faults that a file of objects can have. */
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
  | "invalid-claim"
  | "duplicate";

/** Lines and columns count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A fault of a file, or of one document in it (counted from 0). */
export interface ReadProblem {
  readonly code: ProblemCode;
  readonly file: string;
  readonly document?: number;
  readonly place?: Position;
  readonly message: string;
  /** For an object from which no pod could be read: the item that it may be. */
  readonly item?: RefusedItem;
}

/** `pods/web.yaml:12:3: document 2: ...`: documents are counted from 1 there; that it is the first one goes without saying. */
export function problemText({ place, document = 0, file, message }: ReadProblem): string {
  const where = place === undefined ? file : `${file}:${place.line}:${place.column}`;
  return document === 0 ? `${where}: ${message}` : `${where}: document ${document + 1}: ${message}`;
}

/** One document of a file as plain values. */
export interface SourceDocument {
  readonly value: unknown;
  readonly file: string;
  /** Counted from 0; empty documents count too. */
  readonly document: number;
  /** Where the value at a path (`["spec", "containers", 0]`) stands; where it is absent, the nearest one above it. */
  place(path: readonly (string | number)[]): Position;
}

export type Path = readonly (string | number)[];

/**
 * `kubelet.yaml:3:10: maxPods: expected number`: a fault with the place that a person can go to. `at`: of the value in what
 * the document holds; `base`: of that in the document. `name`: what it is called where it has another name than its path.
 */
export function placedIssue(
  { file, place }: Pick<SourceDocument, "file" | "place">,
  { base, at, name = joinPath("", at), message }: PlacedIssue,
): string {
  const { line, column } = place([...base, ...at]);
  return `${file}:${line}:${column}: ${name}: ${message}`;
}
interface PlacedIssue {
  readonly base: Path;
  readonly at: Path;
  readonly name?: string;
  readonly message: string;
}
