import type { Step } from "../plan/step.ts";

export interface BeginPlan {
  readonly planId: string;
  readonly decisionId: string;
  readonly bootId: string;
  readonly root: string;
  readonly version: 1 | 2;
  readonly pageSize: number;
  readonly steps: readonly Step[];
}
export interface BeginRecord extends BeginPlan {
  readonly type: "begin";
}
export interface EndRecord {
  readonly type: "end";
  readonly planId: string;
  readonly wrote: readonly FileValue[];
  readonly removed: readonly string[];
}
export interface FileValue {
  readonly path: string;
  readonly file: string;
  readonly value: string;
}
export interface DiscardRecord {
  readonly type: "undone" | "dropped";
  readonly planId: string;
}
/** The last value of a file, as a compacted journal keeps it. */
export interface ValueRecord extends FileValue {
  readonly type: "value";
  readonly decisionId: string;
  readonly bootId: string;
}
export type JournalRecord = BeginRecord | EndRecord | DiscardRecord | ValueRecord;

/** Null when the line is not a record of ours. */
export function parseRecord(line: string): JournalRecord | null {
  const value = parseJson(line);
  if (!isObject(value)) return null;
  switch (value["type"]) {
    case "begin":
      return isBegin(value) ? (value as unknown as BeginRecord) : null;
    case "end":
      return isEnd(value) ? (value as unknown as EndRecord) : null;
    case "undone":
    case "dropped":
      return hasTexts(value, "planId") ? (value as unknown as DiscardRecord) : null;
    case "value":
      return hasTexts(value, "path", "file", "value", "decisionId", "bootId")
        ? (value as unknown as ValueRecord)
        : null;
    default:
      return null;
  }
}

type Fields = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const hasTexts = (value: Fields, ...names: readonly string[]): boolean =>
  names.every((name) => typeof value[name] === "string");
const areAll = (value: unknown, is: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(is);
const isText = (value: unknown): boolean => typeof value === "string";
const isTextOrNull = (value: unknown): boolean => value === null || isText(value);

function isBegin(value: Fields): boolean {
  if (!hasTexts(value, "planId", "decisionId", "bootId", "root")) return false;
  if ((value["version"] !== 1 && value["version"] !== 2) || !Number.isSafeInteger(value["pageSize"])) return false;
  return areAll(value["steps"], isStep);
}

function isEnd(value: Fields): boolean {
  const isFileValue = (item: unknown): boolean => isObject(item) && hasTexts(item, "path", "file", "value");
  return hasTexts(value, "planId") && areAll(value["wrote"], isFileValue) && areAll(value["removed"], isText);
}

/** As far as undoing needs it. */
function isStep(value: unknown): boolean {
  if (!isObject(value) || !hasTexts(value, "path")) return false;
  switch (value["op"]) {
    case "mkdir":
      return typeof value["fresh"] === "boolean" && areAll(value["controllers"], isText);
    case "write":
      return hasTexts(value, "file", "to") && isTextOrNull(value["from"]) && isTextOrNull(value["identity"]);
    case "rmdir":
      return true;
    default:
      return false;
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
