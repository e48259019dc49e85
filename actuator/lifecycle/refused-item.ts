/** What can be read of an item of a source that cannot be run as it is written. */
export interface RefusedItem {
  /** Null, of each: it cannot be read. */
  readonly uid: string | null;
  readonly namespace: string | null;
  readonly name: string | null;
  /** Somebody asked for its end; `graceSeconds` null: the pod's own. Null: nobody did. */
  readonly deletion: { readonly graceSeconds: number | null } | null;
  /** `NAMESPACE/NAME` of the pod that has its uid, where that is another one: then it cannot be right. */
  readonly owner?: string;
}
export interface PodIdentity {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

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
const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
