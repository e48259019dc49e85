import { fieldsOf } from "../../api/base/own.ts";
import type { PodIdentity, RefusedItem } from "../../api/documents/problem.ts";

export function refusedItemOf(object: unknown): RefusedItem {
  const metadata = fieldsOf(fieldsOf(object)["metadata"]);
  const { deletionTimestamp, deletionGracePeriodSeconds: seconds } = metadata;
  const isDeleted = typeof deletionTimestamp === "string" && !Number.isNaN(Date.parse(deletionTimestamp));
  return {
    uid: textOf(metadata["uid"]),
    namespace: textOf(metadata["namespace"]),
    name: textOf(metadata["name"]),
    deletion: isDeleted ? { graceSeconds: isSeconds(seconds) ? seconds : null } : null,
  };
}

/** The item that may be this pod: that of its uid, else that of its name, in its namespace or in one that cannot be read. */
export function refusedItemFinder(items: readonly RefusedItem[]): (pod: PodIdentity) => RefusedItem | undefined {
  const byUid = new Map(items.map((item) => [item.uid, item]));
  const byName = new Map(items.flatMap((item) => (item.name === null ? [] : [[keyOf(item), item] as const])));
  return ({ uid, namespace, name }) =>
    byUid.get(uid) ?? byName.get(keyOf({ namespace, name })) ?? byName.get(keyOf({ namespace: null, name }));
}

const keyOf = ({ namespace, name }: Pick<RefusedItem, "namespace" | "name">): string => `${namespace ?? ""}/${name}`;
const isSeconds = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
