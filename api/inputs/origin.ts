import { type Path, placedIssue } from "../../actuator/manifests/issue-place.ts";
import type { InputIssue } from "../model/decode.ts";
import type { InputDocument } from "./document.ts";

export type { Path };

/** Says which document of a file gave a part of the snapshot. */
export interface Origin {
  /** Of the part in the snapshot: `["pods", 3]`. */
  readonly at: Path;
  readonly source: InputDocument;
  /** Of the part in the document: `["items", 3]`. */
  readonly base: Path;
}

/** `pods.yaml:12:7: pods[0].spec.containers: a pod has at least one container`: the issue with the place a person can go to. */
export function issueText(issue: InputIssue, origins: readonly Origin[]): string {
  const steps = stepsOf(issue.path);
  const origin = nearest(origins, steps);
  if (origin === undefined) return `${issue.path}: ${issue.message}`;
  if (!origin.source.hasPlaces) return `${origin.source.file}: ${issue.path}: ${issue.message}`;
  const at = steps.slice(origin.at.length);
  return placedIssue(origin.source, { base: origin.base, at, name: issue.path, message: issue.message });
}

const nearest = (origins: readonly Origin[], steps: Path): Origin | undefined =>
  origins
    .filter(({ at }) => at.every((step, i) => step === steps[i]))
    .reduce<Origin | undefined>((a, b) => (a === undefined || b.at.length > a.at.length ? b : a), undefined);

/** `limits["a/b"]`, `containers[0].name` -> their steps; `$` is the whole. */
export function stepsOf(path: string): Path {
  if (path === "$") return [];
  const parts = path.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g);
  return Array.from(parts, ([, index, quoted, name]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? (name ?? "") : (JSON.parse(quoted) as string);
  });
}
