import { type InputIssue, joinPath } from "../../base/input-issue.ts";
import { mergePatch } from "../../base/merge-patch.ts";
import { type Fields, fieldsOf } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { crossFieldIssues, othersStats } from "../../model/decode.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import { podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { CHANGED_BY_ENTRY, type ChangedByEntry, type ListChanges, type SnapshotChanges } from "../../model/turn.ts";
import { inOrder, isAsItWas } from "./node-state.ts";
import { decodeShared } from "./shared-parts.ts";

type Issues = readonly InputIssue[];
type Part = keyof Snapshot;

/** A snapshot after a turn's changes, and its configuration as it would have been posted, if changed. */
interface Changed {
  readonly snapshot: Snapshot;
  readonly configuration?: unknown;
}

/**
 * Applies `changes` to `before`: unchanged parts keep their objects, and changed ones are checked like posted ones.
 * `configuration`: the configuration of `before` as posted, if it differs from the stored form. Errors: faults of a change or
 * contradictions between two, each with its path below `changes`.
 */
export function changedSnapshot(
  before: Snapshot,
  changes: SnapshotChanges,
  { node, configuration }: { readonly node: string; readonly configuration?: unknown },
): Result<Changed, Issues> {
  const twice = contradictions(changes);
  if (twice.length > 0) return err(twice);
  const { set = {}, merge = {} } = changes;
  const merged = Object.fromEntries(
    Object.entries(merge).map(([part, patch]) => [part, mergedPart(before, part as Part, patch, configuration)]),
  );
  const parts: { [P in Part]?: unknown } = { ...before };
  for (const [posted, at] of [
    [set as Fields, "changes.set"],
    [merged, "changes.merge"],
  ] as const) {
    if (Object.keys(posted).length === 0) continue;
    const given = Object.fromEntries(Object.entries(posted).filter(([, value]) => value !== null));
    const decoded = decodeShared(given, at);
    if (!decoded.ok) return decoded;
    for (const part in posted) parts[part as Part] = decoded.value[part as Part];
  }
  const others = othersStats({ stats: set.stats, node: { metadata: { name: node } } }, "changes.set");
  if (others !== undefined) return err([others]);
  for (const name of CHANGED_BY_ENTRY) {
    const own = changes[name];
    if (own === undefined) continue;
    const list = changedList(name, entriesOf(parts as Snapshot, name), own);
    if (!list.ok) return list;
    if (name === "pods") parts.pods = list.value;
    else parts.runtime = { ...(parts.runtime as Snapshot["runtime"]), [name]: list.value };
  }
  const snapshot = inOrder(parts);
  const issues = isAsItWas(before, snapshot) ? [] : crossFieldIssues(snapshot, "changes", "changes.pods");
  if (issues.length > 0) return err(issues);
  const posted = "kubeletConfiguration" in set ? set.kubeletConfiguration : merged["kubeletConfiguration"];
  return ok({ snapshot, ...(posted === undefined ? {} : { configuration: posted }) });
}

function contradictions({ set = {}, merge = {}, pods, containers, images }: SnapshotChanges): Issues {
  const issues: InputIssue[] = [];
  const both = (path: string, other: string): void => {
    issues.push({ path, message: `${other} changes the same: name what changes once` });
  };
  for (const part in merge) if (part in set) both(joinPath("changes.merge", [part]), joinPath("changes.set", [part]));
  if (pods !== undefined && "pods" in set) both("changes.pods", "changes.set.pods");
  for (const [name, changes] of Object.entries({ containers, images })) {
    if (changes === undefined) continue;
    if ("runtime" in set) both(`changes.${name}`, "changes.set.runtime");
    if (name in fieldsOf(merge.runtime)) both(`changes.${name}`, `changes.merge.runtime.${name}`);
  }
  return issues;
}

/** A part after its patch, as it would have been posted. */
function mergedPart(before: Snapshot, part: Part, patch: unknown, configuration: unknown): unknown {
  const kept: unknown = before[part] === undefined ? undefined : JSON.parse(JSON.stringify(before[part]));
  if (part === "kubeletConfiguration") {
    const own = configuration ?? kept;
    const isWrapped = configurationPath(patch).length > 0 && configurationPath(own).length === 0;
    return mergePatch(isWrapped ? { kubeletconfig: own } : own, patch);
  }
  // `crictl imagefsinfo` has its file systems in a member `status`
  const { imageFilesystems } = fieldsOf(part === "runtime" ? kept : undefined);
  const isWrapped = "status" in fieldsOf(fieldsOf(patch)["imageFilesystems"]);
  return mergePatch(isWrapped ? { ...fieldsOf(kept), imageFilesystems: { status: imageFilesystems } } : kept, patch);
}

const entriesOf = (snapshot: Snapshot, name: ChangedByEntry): readonly object[] =>
  (name === "pods" ? snapshot.pods : snapshot.runtime?.[name]) ?? [];

/** The key of an entry; undefined if it has none. */
const KEYS: { readonly [N in ChangedByEntry]: (entry: never) => string | undefined } = {
  pods: podUid,
  containers: ({ id }: { readonly id: string }) => id,
  images: ({ id }: { readonly id: string }) => id,
};

function changedList(
  name: ChangedByEntry,
  before: readonly object[],
  { upsert = [], remove = [], order }: ListChanges,
): Result<readonly object[], Issues> {
  const at = `changes.${name}`;
  const keyOf = KEYS[name] as (entry: object) => string | undefined;
  const decoded = decodedEntries(name, upsert);
  if (!decoded.ok) return decoded;
  const entries = new Map<string, object>();
  for (const entry of before) {
    const key = keyOf(entry);
    if (key === undefined || entries.has(key)) {
      const message = `${key === undefined ? "one has no key" : `two have the key \`${key}\``}, so they cannot be changed one by one: set the whole list`;
      return err([{ path: at, message }]);
    }
    entries.set(key, entry);
  }
  const issues: InputIssue[] = [];
  for (const [i, key] of remove.entries())
    if (!entries.delete(key))
      issues.push({ path: `${at}.remove[${i}]`, message: `there is none with the key \`${key}\`` });
  const gone = new Set(remove);
  const seen = new Set<string>();
  for (const [i, entry] of decoded.value.entries()) {
    const path = `${at}.upsert[${i}]`;
    const key = keyOf(entry);
    if (key === undefined) issues.push({ path, message: "it has no uid: set the whole list" });
    else if (gone.has(key)) issues.push({ path, message: `\`${key}\` is removed by the same change` });
    else if (seen.has(key)) issues.push({ path, message: `\`${key}\` is changed twice` });
    else entries.set(key, entry);
    if (key !== undefined) seen.add(key);
  }
  if (issues.length > 0) return err(issues);
  return order === undefined ? ok([...entries.values()]) : ordered(entries, order, `${at}.order`);
}

function ordered(
  entries: ReadonlyMap<string, object>,
  order: readonly string[],
  at: string,
): Result<readonly object[], Issues> {
  const list = [...new Set(order)].flatMap((key) => entries.get(key) ?? []);
  if (list.length === entries.size && order.length === entries.size) return ok(list);
  return err([{ path: at, message: `must name each of the ${entries.size} keys once` }]);
}

/** The decoded entries; their issues are reported at the posted paths. */
function decodedEntries(name: ChangedByEntry, upsert: readonly unknown[]): Result<readonly object[], Issues> {
  if (upsert.length === 0) return ok([]);
  const input = name === "pods" ? { pods: upsert } : { runtime: { [name]: upsert } };
  const decoded = decodeShared(input, "");
  if (decoded.ok) return ok(entriesOf(decoded.value, name));
  const root = name === "pods" ? name : `runtime.${name}`;
  return err(
    decoded.error.map(({ path, message }) => ({
      path: path.startsWith(root) ? `changes.${name}.upsert${path.slice(root.length)}` : `changes.${name}`,
      message,
    })),
  );
}
