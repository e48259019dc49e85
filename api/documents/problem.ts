import { joinPath } from "../base/input-issue.ts";

/** The readable part of a source's item that cannot be used as it is. */
export interface RefusedItem {
  /** Null if it cannot be read; the same for namespace and name. */
  readonly uid: string | null;
  readonly namespace: string | null;
  readonly name: string | null;
  /** The requested deletion; `graceSeconds` null for the pod's own. Null if the item has none. */
  readonly deletion: { readonly graceSeconds: number | null } | null;
  /** `NAMESPACE/NAME` of another pod with the same uid, which makes the item invalid. */
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
  /** The item, for an object that could not be read as a pod. */
  readonly item?: RefusedItem;
}

/** `pods/web.yaml:12:3: document 2: ...`: documents are counted from 1 there; the first one is not mentioned. */
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
  /** The position of the value at a path (`["spec", "containers", 0]`), or of the nearest existing one above it. */
  place(path: readonly (string | number)[]): Position;
}

export type Path = readonly (string | number)[];

/**
 * `kubelet.yaml:3:10: maxPods: expected number`: a fault with its position in the file. `at`: the path of the value within the
 * content; `base`: that of the content in the document. `name`: the name to show if it is not the path.
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
