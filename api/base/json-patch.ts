import * as z from "zod";
import { type Fields, isObject } from "./own.ts";
import { err, ok, type Result } from "./result.ts";

/** RFC 6901: `/pods/0/metadata`; the empty text is the whole document. */
const pointer = z.string().regex(/^(?:\/(?:[^/~]|~[01])*)*$/, "must be a JSON pointer");

/** A JSON patch (RFC 6902), limited to operations that need only their own place. */
export const jsonPatch = z.array(
  z.discriminatedUnion("op", [
    z.object({ op: z.literal(["add", "replace"]), path: pointer, value: z.unknown() }),
    z.object({ op: z.literal("remove"), path: pointer }),
  ]),
);
export type JsonPatch = readonly z.output<typeof jsonPatch>[number][];
type Operations = z.output<typeof jsonPatch>;

/**
 * The patch that turns `before` into `now`, both plain JSON; an undefined member counts as absent. An object that is
 * in both is skipped. The same documents give the same patch. Members keep the order of `before`, new ones come last.
 */
export function patchBetween(before: unknown, now: unknown): JsonPatch {
  const patch: Operations = [];
  compare(before, now, "", patch);
  return patch;
}

/**
 * Adds the differences to a patch; returns whether the two have anything in common: otherwise the value is replaced as
 * a whole.
 */
function compare(before: unknown, now: unknown, path: string, patch: Operations): boolean {
  if (before === now) return true;
  const from = patch.length;
  let hasCommon = false;
  if (Array.isArray(before) && Array.isArray(now)) hasCommon = compareLists(before, now, path, patch);
  else if (isObject(before) && isObject(now)) hasCommon = compareObjects(before, now, path, patch);
  if (!hasCommon) patch.splice(from, Number.POSITIVE_INFINITY, { op: "replace", path, value: now });
  return hasCommon;
}

function compareObjects(before: Fields, now: Fields, path: string, patch: Operations): boolean {
  const [names, later] = [namesOf(before), namesOf(now)];
  let hasCommon = names.length === 0 && later.length === 0;
  for (const name of names) {
    const at = below(path, name);
    if (!isThere(now, name)) patch.push({ op: "remove", path: at });
    else if (compare(before[name], now[name], at, patch)) hasCommon = true;
  }
  for (const name of later)
    if (!isThere(before, name)) patch.push({ op: "add", path: below(path, name), value: now[name] });
  return hasCommon;
}

/** Compares entries between the common beginning and the common end one by one; the rest is added or removed. */
function compareLists(before: readonly unknown[], now: readonly unknown[], path: string, patch: Operations): boolean {
  const shorter = Math.min(before.length, now.length);
  let start = 0;
  while (start < shorter && isSame(before[start], now[start])) start++;
  let end = 0;
  while (end < shorter - start && isSame(before.at(-1 - end), now.at(-1 - end))) end++;
  let hasCommon = start + end > 0 || before.length + now.length === 0;
  for (let i = start; i < shorter - end; i++) if (compare(before[i], now[i], `${path}/${i}`, patch)) hasCommon = true;
  for (let i = before.length - end - 1; i >= shorter - end; i--) patch.push({ op: "remove", path: `${path}/${i}` });
  for (let i = shorter - end; i < now.length - end; i++) patch.push({ op: "add", path: `${path}/${i}`, value: now[i] });
  return hasCommon;
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item: unknown, i) => isSame(item, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = namesOf(a);
  return names.length === namesOf(b).length && names.every((name) => isThere(b, name) && isSame(a[name], b[name]));
}

const isThere = (fields: Fields, name: string): boolean => Object.hasOwn(fields, name) && fields[name] !== undefined;
const namesOf = (fields: Fields): readonly string[] => Object.keys(fields).filter((name) => fields[name] !== undefined);
const below = (path: string, name: string): string => `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
const nameIn = (token: string): string => token.replaceAll("~1", "/").replaceAll("~0", "~");

type Container = unknown[] | Record<string, unknown>;
const isContainer = (value: unknown): value is Container => typeof value === "object" && value !== null;

/**
 * The document after the patch; the document itself is not changed, and unchanged parts are shared. Errors: the
 * operation (from 0) whose place does not exist.
 */
export function patched(document: unknown, patch: JsonPatch): Result<unknown, string> {
  // a list around the document makes the document a place like any other
  const around: Container = [document];
  const copies = new Set<unknown>([around]);
  for (const [i, operation] of patch.entries()) {
    const fault = apply(around, operation, copies);
    if (fault !== null) return err(`operation ${i} (${operation.op} ${operation.path || '""'}): ${fault}`);
  }
  return ok(around[0]);
}

/** Applies an operation; null: done. `copies`: objects made by this patch, which may be changed. */
function apply(around: Container, operation: JsonPatch[number], copies: Set<unknown>): string | null {
  let parent = around;
  let name = "0";
  for (const token of operation.path.split("/").slice(1)) {
    const child = has(parent, name) ? (parent as Record<string, unknown>)[name] : undefined;
    if (!isContainer(child)) return "there is no such place";
    const copy = copies.has(child) ? child : Array.isArray(child) ? [...child] : { ...child };
    put(parent, name, copy);
    copies.add(copy);
    parent = copy;
    name = nameIn(token);
  }
  if (operation.op === "add" && parent !== around) {
    if (!Array.isArray(parent)) put(parent, name, operation.value);
    else if (name === "-") parent.push(operation.value);
    else if (name === `${parent.length}` || has(parent, name)) parent.splice(Number(name), 0, operation.value);
    else return "there is no such place";
    return null;
  }
  if (!has(parent, name)) return "there is no such place";
  if (operation.op !== "remove") put(parent, name, operation.value);
  else if (parent === around) return "the whole document cannot be removed";
  else if (Array.isArray(parent)) parent.splice(Number(name), 1);
  else delete parent[name];
  return null;
}

const INDEX = /^(?:0|[1-9]\d*)$/;
const has = (parent: Container, name: string): boolean =>
  Array.isArray(parent) ? INDEX.test(name) && Number(name) < parent.length : Object.hasOwn(parent, name);

/** Sets a member without assignment, which for `__proto__` would set the prototype. */
function put(parent: Container, name: string, value: unknown): void {
  if (name !== "__proto__") (parent as Record<string, unknown>)[name] = value;
  else Object.defineProperty(parent, name, { value, writable: true, enumerable: true, configurable: true });
}
