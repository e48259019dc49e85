import { joinPath } from "../../base/input-issue.ts";
import { type Fields, fieldsOf, isObject } from "../../base/own.ts";
import type { Expected } from "./case-file.ts";

/** A place where the result is not the expected one. */
export interface Mismatch {
  readonly path: string;
  /** Absent if nothing was expected. */
  readonly expected?: unknown;
  readonly found?: unknown;
}
/** The result of `nodewise decide -o json`. */
export interface DecideOutput {
  /** Its output; null if the input is invalid. */
  readonly output: Fields | null;
  /** Its messages about the input. */
  readonly lines: readonly string[];
}

/** The differences; empty if everything is as expected. */
export function mismatches(expected: Expected, { output, lines }: DecideOutput): readonly Mismatch[] {
  const { error, reasons, ...members } = expected;
  if (error !== undefined && !(output === null && lines.some((line) => line.includes(error))))
    return [{ path: "error", expected: error, found: output === null ? lines.join("; ") : endOf(output) }];
  if (error !== undefined) return [];
  if (output === null) return [{ path: "error", found: lines.join("; ") }];
  const found: Mismatch[] = [];
  for (const [name, value] of Object.entries(members)) found.push(...compared(value, output[name], [name]));
  const codes = reasonCodes(output);
  for (const code of reasons ?? [])
    if (!codes.has(code)) found.push({ path: "reasons", expected: code, found: [...codes] });
  // an unexpected refusal is the reason for the missing members
  const isOther = found.length > 0 && "refusal" in output && expected.refusal === undefined;
  return isOther ? [{ path: "refusal", found: endOf(output) }] : found;
}

const endOf = ({ verdict, refusal }: Fields): string =>
  isObject(refusal) ? `${String(refusal["code"])}: ${String(refusal["message"])}` : String(verdict);

/** The codes of all reasons of an answer. */
export function reasonCodes(output: Fields): ReadonlySet<string> {
  const codes = new Set<string>();
  const look = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(look);
    else if (isObject(value))
      for (const [name, member] of Object.entries(value)) {
        if (name === "code" && typeof member === "string") codes.add(member);
        else look(member);
      }
  };
  look(output["reasons"]);
  return codes;
}

type Path = readonly (string | number)[];

function compared(expected: unknown, found: unknown, at: Path): readonly Mismatch[] {
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || expected.length !== found.length) return [mismatch(expected, found, at)];
    return expected.flatMap((one, i) => compared(one, found[i], [...at, i]));
  }
  if (isObject(expected)) {
    if (Array.isArray(found)) return Object.entries(expected).flatMap(([pick, one]) => picked(pick, one, found, at));
    if (!isObject(found)) return [mismatch(expected, found, at)];
    return Object.entries(expected).flatMap(([name, one]) => compared(one, found[name], [...at, name]));
  }
  return Object.is(expected, found) ? [] : [mismatch(expected, found, at)];
}

const mismatch = (expected: unknown, found: unknown, at: Path): Mismatch => ({
  path: joinPath("", at),
  expected,
  found,
});

const entries = (count: number): string => (count === 1 ? "1 entry" : `${count} entries`);

/** `verdict: expected "refused", found "decided"`; for lists of different lengths, the lengths. */
export function mismatchText({ path, expected, found }: Mismatch): string {
  const areLists = Array.isArray(expected) && Array.isArray(found) && expected.length !== found.length;
  const shown = (value: unknown): string => {
    if (areLists) return entries((value as readonly unknown[]).length);
    return value === undefined ? "nothing" : JSON.stringify(value);
  };
  return `${path}: expected ${shown(expected)}, found ${shown(found)}`;
}

/** An entry of a list, by its number or by the value of one of its members, `pod.name=web` */
function picked(pick: string, expected: unknown, list: readonly unknown[], at: Path): readonly Mismatch[] {
  const [, member = "", value] = /^([^=]+)=(.*)$/.exec(pick) ?? [];
  const valueIn = (entry: unknown): unknown => member.split(".").reduce((of, name) => fieldsOf(of)[name], entry);
  const i = value === undefined ? Number(pick) : list.findIndex((entry) => String(valueIn(entry)) === value);
  const entry = list[i];
  if (entry !== undefined) return compared(expected, entry, [...at, i]);
  return [mismatch(expected, undefined, [...at, value === undefined ? i : pick])];
}
