import { map, type Result } from "../../api/base/result.ts";
import type { Done, GcOperation } from "../../api/model/container-gc.ts";
import { appendLine, type JournalError, readLines, replaceFile } from "../core/record-file.ts";

/** The kinds in the order in which they run, since containers keep images in use. */
export const GC_KINDS = ["container-gc", "image-gc"] as const;
export type GcKind = (typeof GC_KINDS)[number];

export interface Space {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** An object to be removed, as a decision names it; an image kept for a runtime handler carries the handler. */
export interface Entry {
  readonly id: string;
  readonly runtimeHandler: string;
  readonly target: "image" | "container" | "sandbox" | "pod-logs" | "log-link";
}
export const keyOf = ({ id, runtimeHandler }: { readonly id: string; readonly runtimeHandler?: string | undefined }) =>
  `${id},${runtimeHandler ?? ""}`;

interface UnfinishedPass {
  readonly kind: GcKind;
  readonly operation: GcOperation;
  readonly snapshot: unknown;
  /** The ids that the first plan named, in its order. */
  readonly planned: readonly string[];
}
/** An interrupted pass: the removals that were begun, those that ended, and those with an unknown end. */
export interface InterruptedPass extends UnfinishedPass {
  readonly done: readonly Done[];
  readonly fileSystem: Space | null;
  readonly unknown: readonly Entry[];
}

type Line =
  | ({ readonly type: "begin" } & UnfinishedPass)
  | { readonly type: "intent"; readonly entry: Entry }
  | { readonly type: "end"; readonly done: Done }
  | { readonly type: "file-system"; readonly space: Space };

/**
 * The pass of a collection that is under way, a file of JSON lines: before a removal its intent, after it its end, each
 * on disk before anything else happens. Empty between passes.
 */
export class GcJournal {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** The pass that was not closed; null: there is none. Errors: the file cannot be read or created. */
  unclosed(): Result<InterruptedPass | null, JournalError> {
    return map(readLines(this.#file), ({ lines }) => passIn(lines));
  }

  begin(pass: UnfinishedPass): Result<unknown, JournalError> {
    return replaceFile(this.#file, [textOf({ type: "begin", ...pass })]);
  }
  intend({ id, runtimeHandler, target }: Entry): Result<unknown, JournalError> {
    return appendLine(this.#file, textOf({ type: "intent", entry: { id, runtimeHandler, target } }));
  }
  end(done: Done): Result<unknown, JournalError> {
    return appendLine(this.#file, textOf({ type: "end", done }));
  }
  fileSystem(space: Space): Result<unknown, JournalError> {
    return appendLine(this.#file, textOf({ type: "file-system", space }));
  }
  /** Ends the pass, which is now recorded elsewhere. */
  close(): Result<unknown, JournalError> {
    return replaceFile(this.#file, []);
  }
}

const textOf = (line: Line): string => JSON.stringify(line);

function passIn(texts: readonly string[]): InterruptedPass | null {
  const lines = texts.map(parse).filter((line) => line !== null);
  const begin = lines.find((line) => line.type === "begin");
  if (begin === undefined) return null;
  const { type: _type, ...pass } = begin;
  const done = lines.flatMap((line) => (line.type === "end" ? [line.done] : []));
  const ended = new Set(done.map(keyOf));
  const intended = lines.flatMap((line) => (line.type === "intent" ? [line.entry] : []));
  const spaces = lines.flatMap((line) => (line.type === "file-system" ? [line.space] : []));
  const unknown = intended.filter((entry) => !ended.has(keyOf(entry)));
  return { ...pass, done, fileSystem: spaces.at(-1) ?? null, unknown };
}

function parse(text: string): Line | null {
  try {
    const line = JSON.parse(text) as Line;
    return ["begin", "intent", "end", "file-system"].includes(line.type) ? line : null;
  } catch {
    return null;
  }
}
