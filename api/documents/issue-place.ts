import { joinPath } from "../model/input-issue.ts";
import type { SourceDocument } from "./source-document.ts";

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
export interface PlacedIssue {
  readonly base: Path;
  readonly at: Path;
  readonly name?: string;
  readonly message: string;
}
