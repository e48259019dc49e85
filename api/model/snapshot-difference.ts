import { perObject } from "../base/cache.ts";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { MIRROR_ANNOTATION } from "./pod.ts";
import { PARTS, type Snapshot } from "./snapshot.ts";
import { CHANGED_BY_ENTRY, type ChangedByEntry, type ListChanges, MERGED_PARTS, type SnapshotChanges } from "./turn.ts";

/** A list whose changes are sent by entry. `T`: an entry, or what is stored of it. */
interface List<T> {
  /** JSON text of the object around the list, such as a v1.List without its items; empty if there is none. */
  readonly around: string;
  /** The entries by key, in order. */
  readonly entries: ReadonlyMap<string, T>;
}
/** A part of a snapshot, split as its changes are sent. */
interface Part<T> {
  /** The part without its lists; for pods, nothing. */
  readonly rest: T;
  readonly lists: ReadonlyMap<ChangedByEntry, List<T>>;
}
type Parts<T> = ReadonlyMap<PartName, Part<T>>;
type PartName = keyof Snapshot;
type Sets = Partial<Record<PartName, unknown>>;

/** Digests of a snapshot's parts and entries, to compare the next one with it. */
export type SnapshotDigests = Parts<string>;

const MERGED: ReadonlySet<PartName> = new Set(MERGED_PARTS);
/** The part of each list, and its member if it is posted in an object, as kubectl and crictl print it. */
const LISTS: { readonly [L in ChangedByEntry]: { readonly part: PartName; readonly member: string } } = {
  pods: { part: "pods", member: "items" },
  containers: { part: "runtime", member: "containers" },
  images: { part: "runtime", member: "images" },
};

/**
 * The changes from `before` to `now`, two snapshots in their posted form (compared by the JSON text of their objects). Null if it
 * should be posted whole, because more than half of it is new, or entries have no unique keys. INVARIANT: the objects are never
 * modified, and an object in both is the same.
 */
export function changesBetween(before: unknown, now: unknown): SnapshotChanges | null {
  const same = (a: unknown, b: unknown): boolean => a === b || textOf(a) === textOf(b);
  return changesOf(
    partsOf(before, (value) => value),
    now,
    { same, merged: mergeBetween },
  );
}

/**
 * Does the same for a caller that stores only digests, no snapshots: some 200 bytes per pod. `digest`: a collision-free digest of
 * a text. Parts are never merged.
 */
export function digestingDifference(digest: (text: string) => string) {
  const ofObject = perObject((value: object) => digest(textOf(value)));
  const of = (value: unknown): string =>
    typeof value === "object" && value !== null ? ofObject(value) : digest(textOf(value));
  return {
    /** Null if the next one's changes cannot be determined. */
    digestsOf: (snapshot: unknown): SnapshotDigests | null => partsOf(snapshot, of),
    changesSince: (before: SnapshotDigests, now: unknown): SnapshotChanges | null =>
      changesOf(before, now, { same: (a, b) => a === of(b), merged: () => null }),
  };
}

/** JSON text of a value. INVARIANT: the objects are never modified. */
const textOf = (value: unknown): string =>
  typeof value === "object" && value !== null ? textOfObject(value) : (JSON.stringify(value) ?? "null");
const textOfObject = perObject((value: object) => JSON.stringify(value));

/** The length of a snapshot's JSON text, except for some punctuation. Fast if most of its objects are in the cache. */
export function lengthOf(snapshot: unknown): number {
  const parts = partsOf(snapshot, (value) => value);
  if (parts === null) return textOf(snapshot).length;
  return [...parts.values()].reduce((sum, part) => sum + lengthOfPart(part), 0);
}
function lengthOfPart({ rest, lists }: Part<unknown>): number {
  let length = textOf(rest).length;
  for (const { entries } of lists.values()) for (const entry of entries.values()) length += textOf(entry).length;
  return length;
}

/** Null if it is no snapshot, or an entry of a list has no key or shares one. */
function partsOf<T>(snapshot: unknown, keep: (value: unknown) => T): Parts<T> | null {
  if (!isObject(snapshot)) return null;
  const parts = new Map<PartName, Part<T>>();
  for (const name of PARTS) {
    const value = snapshot[name];
    if (value === undefined || value === null) continue;
    let rest: unknown = value;
    const lists = new Map<ChangedByEntry, List<T>>();
    for (const list of CHANGED_BY_ENTRY) {
      if (LISTS[list].part !== name) continue;
      const posted = name === "pods" ? value : fieldsOf(value)[list];
      if (posted === undefined || posted === null) continue;
      const cut = listOf(list, posted, keep);
      if (cut === null) return null;
      lists.set(list, cut);
      const { [list]: _, ...others } = fieldsOf(rest);
      rest = name === "pods" ? null : others;
    }
    parts.set(name, { rest: keep(rest), lists });
  }
  return parts;
}

function listOf<T>(name: ChangedByEntry, posted: unknown, keep: (value: unknown) => T): List<T> | null {
  const { [LISTS[name].member]: held, ...around } = fieldsOf(posted);
  const list: unknown = isObject(posted) ? (held ?? []) : posted;
  if (!Array.isArray(list)) return null;
  const entries = new Map<string, T>();
  for (const entry of list as readonly unknown[]) {
    const key = keyOf(name, fieldsOf(entry));
    if (typeof key !== "string" || key === "" || entries.has(key)) return null;
    entries.set(key, keep(entry));
  }
  return { around: isObject(posted) ? JSON.stringify(around) : "", entries };
}

function keyOf(list: ChangedByEntry, entry: Fields): unknown {
  if (list !== "pods") return entry["id"];
  const { uid, annotations } = fieldsOf(entry["metadata"]);
  return fieldsOf(annotations)[MIRROR_ANNOTATION] ?? uid;
}

interface Comparison<T> {
  readonly same: (before: T, now: unknown) => boolean;
  /** The merge patch between the two; null if no patch is correct. */
  readonly merged: (before: T, now: unknown) => Fields | null;
}
/** The changes of a part, their length and that of the whole part, both in characters of JSON. */
interface PartChanges {
  readonly changes: SnapshotChanges;
  readonly changed: number;
  readonly whole: number;
}

function changesOf<T>(before: Parts<T> | null, now: unknown, comparison: Comparison<T>): SnapshotChanges | null {
  const parts = partsOf(now, (value) => value);
  if (before === null || parts === null) return null;
  let [changed, whole] = [0, 0];
  const set: Sets = {};
  const merge: SnapshotChanges["merge"] = {};
  const changes: SnapshotChanges = {};
  for (const name of before.keys()) if (!parts.has(name)) set[name] = null;
  for (const [name, part] of parts) {
    const posted = (now as Fields)[name];
    const known = before.get(name);
    if (name === "pods" && known !== undefined && !areAlike(known, part)) return null;
    const own = partChanges(name, known, part, posted, comparison);
    const { set: sets, merge: merges, ...lists } = own.changes;
    Object.assign(set, sets);
    Object.assign(merge, merges);
    Object.assign(changes, lists);
    changed += own.changed;
    whole += own.whole;
  }
  if (2 * changed > whole) return null;
  if (Object.keys(set).length > 0) changes.set = set;
  if (Object.keys(merge).length > 0) changes.merge = merge;
  return changes;
}

/** Whether both have the same lists in the same form. */
const areAlike = (a: Part<unknown>, b: Part<unknown>): boolean =>
  a.lists.size === b.lists.size && [...a.lists].every(([name, { around }]) => b.lists.get(name)?.around === around);

function partChanges<T>(
  name: PartName,
  before: Part<T> | undefined,
  now: Part<unknown>,
  posted: unknown,
  { same, merged }: Comparison<T>,
): PartChanges {
  const whole = lengthOfPart(now);
  const anew = { changes: { set: { [name]: posted } }, changed: whole, whole };
  if (before === undefined || !areAlike(before, now)) return anew;
  const changes: SnapshotChanges = {};
  let changed = 0;
  if (!same(before.rest, now.rest)) {
    const patch = MERGED.has(name) ? merged(before.rest, now.rest) : null;
    if (patch === null) return anew;
    changes.merge = { [name]: patch };
    changed += JSON.stringify(patch).length;
  }
  for (const [list, { entries }] of now.lists) {
    const own = listChanges((before.lists.get(list) as List<T>).entries, entries, same);
    if (own === null) continue;
    changes[list] = own;
    changed += JSON.stringify(own).length;
  }
  return 2 * changed > whole ? anew : { changes, changed, whole };
}

/** Null if they are equal. */
function listChanges<T>(
  before: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, unknown>,
  same: Comparison<T>["same"],
): ListChanges | null {
  const changed = [...now].filter(([key, entry]) => !before.has(key) || !same(before.get(key) as T, entry));
  const upsert = changed.map(([, entry]) => entry);
  const remove = [...before.keys()].filter((key) => !now.has(key));
  const order = [...now.keys()];
  const natural = [...[...before.keys()].filter((key) => now.has(key)), ...order.filter((key) => !before.has(key))];
  const isMoved = natural.some((key, i) => key !== order[i]);
  if (upsert.length + remove.length === 0 && !isMoved) return null;
  return {
    ...(upsert.length > 0 && { upsert }),
    ...(remove.length > 0 && { remove }),
    ...(isMoved && { order }),
  };
}

/** RFC 7396. Null if the patch would have to set a member to null, which removes it, or one that no patch can name. */
function mergeBetween(before: unknown, now: unknown): Fields | null {
  if (!isObject(before) || !isObject(now)) return null;
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [a, b] = [memberOf(before, name), memberOf(now, name)];
    if (a === b) continue;
    if (name === "__proto__") return null;
    if (b === undefined) patch[name] = null;
    else if (isObject(a) && isObject(b)) {
      const inner = mergeBetween(a, b);
      if (inner === null) return null;
      if (Object.keys(inner).length > 0) patch[name] = inner;
    } else if (isLostInPatch(b)) return null;
    else if (textOf(a) !== textOf(b)) patch[name] = b;
  }
  return patch;
}
const memberOf = (fields: Fields, name: string): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined);
/** Whether a patch would lose a null within the value; in a list a null is a normal value. */
const isLostInPatch = (value: unknown): boolean =>
  value === null ||
  (isObject(value) && Object.entries(value).some(([name, member]) => name === "__proto__" || isLostInPatch(member)));
