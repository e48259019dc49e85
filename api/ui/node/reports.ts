import type { ResultRow } from "../../../db/store.ts";

/** What was reported of one file of a cgroup, or (file "") of the cgroup itself. */
export interface Reported {
  readonly path: string;
  readonly file: string;
  readonly op: string;
  readonly wanted: string | null;
  /** What it held before; null: it was not there, or not looked at. */
  readonly found: string | null;
  readonly status: string;
  readonly message: string;
}
export interface Reports {
  /** By path, then by file. */
  readonly byPath: ReadonlyMap<string, ReadonlyMap<string, Reported>>;
  readonly atMs: number;
  /** The reporter only looked. */
  readonly dryRun: boolean;
  /** Steps that are not as decided now. */
  readonly open: number;
  readonly mended: number;
}

const AS_DECIDED: ReadonlySet<string> = new Set(["applied", "unchanged"]);
export const isOpen = ({ status }: Reported): boolean => !AS_DECIDED.has(status);

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** The newest report of one decision, which is of all its steps, as the fleet counts it; null: none was made. */
export function reportsOf(rows: readonly ResultRow[]): Reports | null {
  const last = rows.at(-1);
  if (last === undefined) return null;
  const byPath = new Map<string, Map<string, Reported>>();
  const body = bodyOf(last.body);
  const dryRun = body.dryRun === true;
  for (const step of Array.isArray(body.steps) ? body.steps : []) {
    const told = reported(step as Record<string, unknown> | null);
    if (told === null) continue;
    const files = byPath.get(told.path) ?? new Map<string, Reported>();
    byPath.set(told.path, files.set(told.file, told));
  }
  const all = [...byPath.values()].flatMap((files) => [...files.values()]);
  const open = all.filter(isOpen).length;
  const mended = all.filter(({ status }) => status === "applied").length;
  return { byPath, atMs: last.atMs, dryRun, open, mended };
}

function bodyOf(text: string): { readonly dryRun?: unknown; readonly steps?: unknown } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

/** A reporter may tell whatever it likes beside a step's status. */
function reported(step: Readonly<Record<string, unknown>> | null): Reported | null {
  const path = textOf(step?.["path"]);
  const status = textOf(step?.["status"]);
  if (step === null || path === null || status === null) return null;
  return {
    path,
    file: textOf(step["file"]) ?? "",
    op: textOf(step["op"]) ?? "write",
    wanted: textOf(step["to"]) ?? textOf(step["value"]),
    found: textOf(step["before"]) ?? textOf(step["from"]),
    status,
    message: textOf(step["message"]) ?? "",
  };
}
