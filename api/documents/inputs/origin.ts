import type { InputIssue } from "../../base/input-issue.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Stats } from "../../model/units.ts";
import type { SourceDocument } from "../problem.ts";
import { type Path, placedIssue } from "../problem.ts";

/** The latest time in the stats, if the snapshot has stats and no time; undefined if they have none. */
export function assumedTime({ observedAt, stats }: Snapshot): string | undefined {
  if (observedAt !== undefined || stats === undefined) return undefined;
  const latest = Math.max(...timesOf(stats).map((time) => Date.parse(time)));
  return Number.isFinite(latest) ? new Date(latest).toISOString() : undefined;
}

function timesOf({ node, pods = [] }: Stats): readonly string[] {
  const { systemContainers = [], memory, fs, runtime, rlimit } = node ?? {};
  const parts = [memory, fs, runtime?.imageFs, runtime?.containerFs, rlimit];
  const memories = [...systemContainers, ...pods].map((of) => of.memory);
  return [...parts, ...memories].flatMap((part) => (part?.time === undefined ? [] : [part.time]));
}

export type { Path };

/** The document of a file that a part of the snapshot came from. */
export interface Origin {
  /** The path of the part in the snapshot: `["pods", 3]`. */
  readonly at: Path;
  readonly source: InputDocument;
  /** The path of the part in the document: `["items", 3]`. */
  readonly base: Path;
}

/** `pods.yaml:12:7: pods[0].spec.containers: a pod has at least one container`: the issue with its position in the file. */
export function issueText(issue: InputIssue, origins: readonly Origin[]): string {
  const origin = originOf(issue, origins);
  if (origin === undefined) return `${issue.path}: ${issue.message}`;
  if (!origin.source.hasPlaces) return `${origin.source.file}: ${issue.path}: ${issue.message}`;
  const at = stepsOf(issue.path).slice(origin.at.length);
  return placedIssue(origin.source, { base: origin.base, at, name: issue.path, message: issue.message });
}

/** The document that the value of an issue came from; undefined if it came from none. */
export function originOf({ path }: InputIssue, origins: readonly Origin[]): Origin | undefined {
  const steps = stepsOf(path);
  return origins
    .filter(({ at }) => at.every((step, i) => step === steps[i]))
    .reduce<Origin | undefined>((a, b) => (a === undefined || b.at.length > a.at.length ? b : a), undefined);
}

/** The steps of a path such as `limits["a/b"]` or `containers[0].name`; `$` is the whole. */
export function stepsOf(path: string): Path {
  if (path === "$") return [];
  const parts = path.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g);
  return Array.from(parts, ([, index, quoted, name]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? (name ?? "") : (JSON.parse(quoted) as string);
  });
}

/** Whether a value has something at a path. */
export function hasAt(value: unknown, steps: Path): boolean {
  let at = value;
  for (const step of steps) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return false;
    at = (at as Readonly<Record<string | number, unknown>>)[step];
  }
  return true;
}

/** A document of a file; in a large one, positions cannot be looked up. */
export interface InputDocument extends SourceDocument {
  readonly hasPlaces: boolean;
}
