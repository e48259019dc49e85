import type { PodAsk } from "../../model/ask.ts";
import type { Refusal } from "../../model/decision.ts";
import type { PodRef } from "../../model/managers.ts";
import { type Pod, podNamespace, podRef, podUid } from "../../model/pod.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";

/** The managers know pods by uid; a pod that no API server has seen goes by its name. */
export const withUid = (pod: Pod): Pod =>
  podUid(pod) === undefined
    ? { ...pod, metadata: { ...pod.metadata, uid: `${podNamespace(pod)}.${pod.metadata.name}` } }
    : pod;

/** The pod that is asked about; null: none. */
export function askedPod(snapshot: Snapshot, { pod }: PodAsk): Result<Pod | null, Refusal> {
  if (pod === null) return ok(null);
  if (typeof pod !== "string") return ok(withUid(pod));
  const found = (snapshot.pods ?? []).find((p) => `${podNamespace(p)}/${p.metadata.name}` === pod);
  if (found !== undefined) return ok(withUid(found));
  return err({ code: "no_such_pod", message: `the snapshot has no pod \`${pod}\``, needs: ["pods"] });
}

/** Whose a uid is; what is gone from the snapshot has no name any more. */
export function podNames(pods: readonly Pod[]): (uid: string) => PodRef {
  const refs = new Map(pods.map((pod) => [podUid(pod) ?? "", podRef(pod)]));
  return (uid) => refs.get(uid) ?? { namespace: "", name: "", uid };
}
