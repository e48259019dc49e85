import { decideByAdmitHandlers, type ManagersAtHand } from "../../../api/decide/kinds/admission.ts";
import type { AdmissionDecision } from "../../../api/model/admission.ts";
import type { Decided, Explain, Refusal } from "../../../api/model/decision.ts";
import { decodePodAsk } from "../../../api/model/pod-ask.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { node } from "../../kit/nodes.ts";
import { requesting } from "../../kit/pods.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";

/** Decides an admission from the posted JSON, as the API does; an invalid ask throws. */
export function admissionOf(snapshot: Json, pod: unknown, at: ManagersAtHand = {}, explain: Explain = "reasons") {
  const ask = decodePodAsk({ pod }, "ask");
  if (!ask.ok) throw new Error(JSON.stringify(ask.error));
  return decideByAdmitHandlers(
    { snapshot: effectiveSnapshot(decoded({ pods: [], ...snapshot })), facts: {}, ask: ask.value, explain },
    at,
  );
}
export function admitted(snapshot: Json, pod: unknown, at: ManagersAtHand = {}): Decided<AdmissionDecision> {
  const answer = admissionOf(snapshot, pod, at);
  if (!answer.ok) throw new Error(`refused: ${answer.error.message}`);
  return answer.value;
}
export function refusal(snapshot: Json, pod: unknown): Refusal {
  const answer = admissionOf(snapshot, pod);
  if (answer.ok) throw new Error("answered");
  return answer.error;
}
/** `HANDLER REASON` of each handler that would refuse the pod, in order. */
export const wouldRefuse = ({ decision }: Decided<AdmissionDecision>): readonly string[] =>
  decision.wouldRefuse.map(({ handler, reason }) => `${handler} ${reason}`);

const READY = {
  allocatable: { cpu: "4", memory: "8Gi", "ephemeral-storage": "10Gi", pods: "10" },
  conditions: [{ type: "Ready", status: "True", message: "kubelet is posting ready status" }],
  nodeInfo: { kernelVersion: "6.1.0" },
};
/**
 * A snapshot of a node with 4 CPUs, 8 GiB and 10 pods, with additions to the snapshot, to the node's status and to the
 * node.
 */
export const readyNode = (parts: Json = {}, status: Json = {}, more: Json = {}): Json => ({
  node: {
    ...node({ ...READY, ...status }, { metadata: { labels: { "kubernetes.io/os": "linux", zone: "a" } } }),
    ...more,
  },
  ...parts,
});
/** A pod of one container that is bound to the node of `readyNode`. */
export const boundPod = (name: string, requests: Json = {}, spec: Json = {}, more: Json = {}): Json =>
  requesting(name, requests, { nodeName: "n", ...spec }, more);
export const CRITICAL = { priority: 2_000_000_000 };
