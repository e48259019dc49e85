import { MIRROR_ANNOTATION } from "../api/model/pod.ts";

const SOURCE_ANNOTATION = "kubernetes.io/config.source";
const NONE_GONE = "no pod counts as gone";

/**
 * Why a list that was answered, or written to a file, cannot be trusted to hold all pods of the node; null: it can. A
 * v1.PodList may be one page of several. A kubelet that has just started answers with no pods, or with those of its own
 * files, until it has heard its API server; an API server shows a static pod as its mirror, and gives each list the
 * version that it is of, which a kubelet's /pods and `kubectl get -o json` do not have: then none is none.
 */
export function whyPartial(list: unknown, pods: readonly unknown[]): string | null {
  const { continue: next, remainingItemCount: left, resourceVersion } = fieldsOf(fieldsOf(list)["metadata"]);
  if ((typeof next === "string" && next !== "") || (typeof left === "number" && left > 0))
    return `the list of pods is one page of several (metadata.${next ? "continue" : "remainingItemCount"} is set): ${NONE_GONE}`;
  if (pods.length === 0 && isVersion(resourceVersion)) return null;
  if (pods.length === 0)
    return `the list of pods is empty: a kubelet that has just started answers so as well, ${NONE_GONE}`;
  return pods.every(isOnlyOfKubelet)
    ? `the list of pods holds only a kubelet's own, none of an API server's: it may not have been heard yet, ${NONE_GONE}`
    : null;
}

/** `0` asks for any version, and is none itself. */
const isVersion = (value: unknown): boolean => typeof value === "string" && value !== "" && value !== "0";

/**
 * What is no pod at all among the items of a list, by index: what stands there may be any of the node's pods, so the list
 * tells of none that it is gone.
 */
export function namelessItems(items: readonly unknown[]): readonly string[] {
  return items.flatMap((item, index) => {
    const metadata = fieldsOf(fieldsOf(item)["metadata"]);
    const lacks = ["uid", "name"].filter((field) => typeof metadata[field] !== "string" || metadata[field] === "");
    return lacks.length === 0
      ? []
      : [`items[${index}] has no ${lacks.map((field) => `metadata.${field}`).join(" and no ")}: ${NONE_GONE}`];
  });
}

function isOnlyOfKubelet(pod: unknown): boolean {
  const annotations = fieldsOf(fieldsOf(fieldsOf(pod)["metadata"])["annotations"]);
  const source = annotations[SOURCE_ANNOTATION];
  return typeof source === "string" && source !== "api" && annotations[MIRROR_ANNOTATION] === undefined;
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
