import type { PodIdentity, RefusedItem } from "../../api/documents/problem.ts";
import { namespacedName } from "../../api/model/forms.ts";
import type { RuntimePods } from "../containerd/cri.ts";
import type { RunnablePod } from "./pod.ts";
import { isStopped } from "./pod-state.ts";
import type { PodRecord } from "./record.ts";
import { refusedItemFinder } from "./refused-item.ts";

/** Changes of a node's pods since the last comparison, in the order in which they must be recorded. */
export type PodSourceChange =
  /** A pod that was never seen. */
  | { readonly kind: "added"; readonly pod: RunnablePod }
  /** A running pod whose record is lost: it is adopted. */
  | { readonly kind: "adopted"; readonly pod: RunnablePod }
  /** A known pod with another spec, labels or annotations. */
  | { readonly kind: "updated"; readonly uid: string; readonly pod: RunnablePod }
  /** `graceSeconds` null: the pod's own grace period. */
  | { readonly kind: "deleted"; readonly uid: string; readonly graceSeconds: number | null }
  /** Nothing of the pod runs, and no source lists it: its record is removed. */
  | { readonly kind: "removed"; readonly uid: string }
  /** The pod runs under the daemon's name, without a record or a source. */
  | { readonly kind: "orphaned"; readonly uid: string }
  /** The pod is read from another file than its record says. */
  | { readonly kind: "moved"; readonly uid: string; readonly file: string }
  /** The pod would be ended, but an unreadable file may contain it. */
  | { readonly kind: "unconfirmed"; readonly uid: string }
  /** The current object for it cannot be the same pod, or cannot be run: the pod continues in its last good form. */
  | { readonly kind: "lastGood"; readonly uid: string; readonly why: string };

export interface PodSources {
  readonly desired: ReadonlyMap<string, RunnablePod>;
  /** False: a missing pod need not be gone. */
  readonly whole: boolean;
  /** If not whole: the files that may contain missing pods; null: they may be anywhere. */
  readonly unread: readonly string[] | null;
  /** The files by pod uid, for pods read from a file. */
  readonly files: ReadonlyMap<string, string>;
  /** Objects of the source that cannot be run as they are written; running pods of theirs continue. */
  readonly refused: readonly RefusedItem[];
  readonly records: Iterable<readonly [string, PodRecord]>;
  /** The daemon's own pods; null: the runtime does not answer. */
  readonly runtimePods: RuntimePods | null;
}

/**
 * Compares the desired pods with the known and the running ones. Pure. INVARIANT: uncertainty ends nothing: neither a list that
 * may lack pods, nor an item that cannot be run, nor a runtime that does not answer.
 */
export function podSourceDiff(sources: PodSources): readonly PodSourceChange[] {
  const { files, runtimePods } = sources;
  const records = new Map(sources.records);
  const conflicting = conflictingUids(sources.desired, records, runtimePods);
  const desired = new Map([...sources.desired].filter(([uid]) => !conflicting.has(uid)));
  const changes: PodSourceChange[] = [];
  const find = refusedItemFinder([...sources.refused, ...conflicting.values()]);
  for (const [uid, record] of records) {
    const pod = desired.get(uid);
    const file = files.get(uid);
    if (file !== undefined && file !== record.file) changes.push({ kind: "moved", uid, file });
    const change = pod === undefined ? missing(uid, record, sources, find) : listed(uid, record, pod);
    if (change !== null) changes.push(change);
  }
  for (const pod of desired.values()) {
    if (records.has(pod.uid)) continue;
    const left = runtimePods?.get(pod.uid);
    if (pod.deletion !== null && left === undefined) continue;
    // a stopped pod holds no resources, so others may have them by now
    if (left !== undefined && (pod.deletion !== null || !isStopped(left))) {
      changes.push({ kind: "adopted", pod });
      // a pod that is being deleted is not started again, not even for one sync
      if (pod.deletion !== null)
        changes.push({ kind: "deleted", uid: pod.uid, graceSeconds: pod.deletion.graceSeconds });
    }
    // without the runtime's lists, it may already be running
    else if (runtimePods !== null) changes.push({ kind: "added", pod });
  }
  for (const left of runtimePods?.values() ?? []) {
    const { uid } = left;
    if (records.has(uid) || desired.has(uid)) continue;
    const item = find(left);
    if (item !== undefined && !isToEnd(item, left)) changes.push(keeps(uid, item));
    else if (item !== undefined || !mayBeNamed(undefined, sources)) changes.push({ kind: "orphaned", uid });
    else if (sources.unread !== null) changes.push({ kind: "unconfirmed", uid });
  }
  return changes;
}

function listed(uid: string, record: PodRecord, pod: RunnablePod): PodSourceChange | null {
  if (record.state === "terminating" || (record.state === "terminated" && pod.deletion === null)) return null;
  if (pod.deletion !== null) return ending(uid, record, pod.deletion.graceSeconds);
  return sameSpec(record.pod, pod.object) ? null : { kind: "updated", uid, pod };
}

type FindItem = ReturnType<typeof refusedItemFinder>;

function missing(uid: string, record: PodRecord, sources: PodSources, find: FindItem): PodSourceChange | null {
  if (record.state === "terminating") return null;
  const identity = identityOf(uid, record);
  const item = find(identity);
  if (item !== undefined && isToEnd(item, identity)) return ending(uid, record, item.deletion.graceSeconds);
  if (item !== undefined) return record.state === "active" ? keeps(uid, item) : null;
  if (!mayBeNamed(record.file, sources)) return ending(uid, record, null);
  return sources.unread === null ? null : { kind: "unconfirmed", uid };
}

/** Whether an unreadable file may contain the pod. `file`: where it was last read; undefined: not known. */
const mayBeNamed = (file: string | undefined, { whole, unread }: Pick<PodSources, "whole" | "unread">): boolean =>
  !whole && (unread === null || file === undefined || unread.includes(file));

type DeletedItem = RefusedItem & { readonly deletion: NonNullable<RefusedItem["deletion"]> };
/**
 * Whether the item requests the pod's end, compared by uid, since it may mean another pod of the same name; a generated
 * name is uncertain.
 */
const isToEnd = (item: RefusedItem, { uid, namespace, name }: PodIdentity): item is DeletedItem =>
  item.uid === uid &&
  item.deletion !== null &&
  (item.namespace ?? namespace) === namespace &&
  (item.name ?? name) === name;

function keeps(uid: string, item: RefusedItem): PodSourceChange {
  const isOfUid = item.uid === uid;
  const name = `${item.namespace ?? "?"}/${item.name ?? "?"}`;
  if (item.owner === undefined)
    return { kind: "lastGood", uid, why: `${name}${isOfUid ? ", of this uid," : ""} cannot be run as it is written` };
  const why = isOfUid
    ? `${name} has its uid, and is another pod`
    : `${name} stands there with the uid of ${item.owner}`;
  return { kind: "lastGood", uid, why };
}

/**
 * Objects whose uid belongs to a pod with another name, by uid. An API server assigns no uid twice, so such an object may mean
 * either pod, and neither is ended because of it. A pending pod has not started yet, and may get another name.
 */
function conflictingUids(
  desired: PodSources["desired"],
  records: ReadonlyMap<string, PodRecord>,
  runtimePods: RuntimePods | null,
): ReadonlyMap<string, RefusedItem> {
  const known = new Map<string, PodIdentity>(runtimePods);
  for (const [uid, record] of records) known.set(uid, identityOf(uid, record));
  const names = new Set(Array.from(known.values(), namespacedName));
  const conflicting = new Map<string, RefusedItem>();
  for (const [uid, pod] of desired) {
    const owner = known.get(uid);
    if (owner === undefined || namespacedName(owner) === namespacedName(pod)) continue;
    if (records.get(uid)?.state === "pending" && !names.has(namespacedName(pod))) continue;
    conflicting.set(uid, {
      uid,
      namespace: pod.namespace,
      name: pod.name,
      deletion: null,
      owner: namespacedName(owner),
    });
  }
  return conflicting;
}

/** A pod that never started, or has ended, has nothing to stop. */
const ending = (uid: string, { state }: PodRecord, graceSeconds: number | null): PodSourceChange =>
  state === "pending" || state === "terminated" ? { kind: "removed", uid } : { kind: "deleted", uid, graceSeconds };

function identityOf(uid: string, { pod }: PodRecord): PodIdentity {
  const { namespace = "default", name } = pod["metadata"] as { namespace?: string; name: string };
  return { uid, namespace, name };
}

/** Whether both specs are equal; `status` and the rest of `metadata` do not count. */
export const sameSpec = (one: object, other: object): boolean => one === other || specText(one) === specText(other);
function specText(pod: object): string {
  const { spec, metadata } = pod as { spec?: unknown; metadata?: { labels?: unknown; annotations?: unknown } };
  return JSON.stringify([spec, metadata?.labels, metadata?.annotations]);
}
