import { createHash } from "node:crypto";
import type { Kind } from "../api/model/decision.ts";
import type { ResultsReport } from "./ports.ts";

/** A decision made here while the API was away, with what was done about it; null: nothing was yet. */
export interface Pending {
  readonly kind: Kind;
  readonly snapshot: unknown;
  readonly ask?: object;
  readonly report: Omit<ResultsReport, "decisionId" | "seq"> | null;
}

/** One decision that waits, as text. */
export interface Entry {
  /** Of what was asked: asked again, it is the same entry. */
  readonly key: string;
  readonly asked: string;
  readonly report: string;
}
/** A line of the file: an entry, or the report of one further up, which came later. */
export type Line = Entry | Omit<Entry, "asked">;

export const NO_REPORT = "null";

export function entryOf({ report, ...pending }: Pending): Entry {
  const asked = JSON.stringify(pending);
  return { key: keyOf(asked), asked, report: JSON.stringify(report) };
}
export const pendingOf = ({ asked, report }: Entry): Pending => ({ ...JSON.parse(asked), report: JSON.parse(report) });

/** Without the line's end. */
export const lineOf = (line: Line): string =>
  "asked" in line
    ? `{"key":"${line.key}","report":${line.report},${line.asked.slice(1)}`
    : `{"of":"${line.key}","report":${line.report}}`;

export const sizeOf = ({ asked, report }: Entry): number => asked.length + report.length;

/** Null: a crash cut it short, or it is none. */
export function parseLine(text: string): Line | null {
  try {
    const { of, key, report, ...pending } = JSON.parse(text) as Pending & {
      readonly of?: string;
      readonly key?: string;
    };
    if (typeof of === "string") return { key: of, report: JSON.stringify(report) };
    if (typeof pending.kind !== "string") return null;
    const asked = JSON.stringify(pending);
    return { key: key ?? keyOf(asked), asked, report: JSON.stringify(report ?? null) };
  } catch {
    return null;
  }
}

const keyOf = (asked: string): string => createHash("sha256").update(asked).digest("hex").slice(0, 32);
