import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { ReasonCode, Refusal } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { Node, Toleration } from "../../model/placement.ts";
import {
  type Container,
  isActive,
  isTerminal,
  namespacedPodName,
  type Pod,
  podUid,
  SYSTEM_PRIORITY_CLASSES,
} from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveConfiguration, EffectiveSnapshot } from "../../profiles/effective.ts";
import { allocatedPod, podsOfNode } from "../pods/node-pods.ts";
import { Reasons } from "../reasons.ts";

interface RequestedPod {
  readonly pod: Pod;
  /** The active pod of the snapshot that is the same pod. */
  readonly known: Pod | undefined;
}

/**
 * The pod of the ask, with the API server's defaults if it was never stored there. `here`: the node's pods. Errors:
 * the ask has no pod, or names one that the snapshot does not have.
 */
function podToAdmit(
  snapshot: Snapshot,
  ask: Pod | string | null,
  here: readonly Pod[],
  reasons: Reasons<ReasonCode<"admission">>,
): Result<RequestedPod, Refusal> {
  if (ask === null) {
    const message = "which pod is to come in? post it, or name one of the snapshot";
    return err({ code: "needs_input", message, needs: ["ask.pod"] });
  }
  const pod = typeof ask === "string" ? snapshot.pods?.find((p) => namespacedPodName(p) === ask) : ask;
  if (pod === undefined) {
    return err({ code: "no_such_pod", message: `the snapshot has no pod \`${ask}\``, needs: ["pods"] });
  }
  const uid = podUid(pod);
  const isIt = (p: Pod): boolean =>
    uid === undefined ? namespacedPodName(p) === namespacedPodName(pod) : podUid(p) === uid;
  const known = here.find((p) => isActive(p) && isIt(p));
  if (known !== undefined) reasons.add("asked_again", namespacedPodName(pod), "onNode");
  else if (isTerminal(pod))
    reasons.add("pod_has_ended", namespacedPodName(pod), "onNode", { phase: pod.status?.phase });
  return ok({ pod: asCreated(pod, reasons), known });
}

/** kubernetes 1.36: the admission plugin DefaultTolerationSeconds. */
const DEFAULT_TOLERATIONS: readonly Toleration[] = ["not-ready", "unreachable"].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: "Exists",
  effect: "NoExecute",
}));

/**
 * Adds what the API server adds when it creates a pod. A pod with a uid already exists; a static pod is never created
 * there.
 */
function asCreated(pod: Pod, reasons: Reasons<ReasonCode<"admission">>): Pod {
  if (podUid(pod) !== undefined || pod.metadata.annotations?.["kubernetes.io/config.source"] !== undefined) return pod;
  const { priority, priorityClassName, tolerations = [] } = pod.spec;
  const missing = DEFAULT_TOLERATIONS.filter(
    ({ key }) => !tolerations.some((t) => (t.key || key) === key && (t.effect || "NoExecute") === "NoExecute"),
  );
  const ofClass = priority ?? SYSTEM_PRIORITY_CLASSES.get(priorityClassName ?? "");
  if (ofClass !== priority) {
    reasons.add("priority_of_class", namespacedPodName(pod), "critical", { priorityClassName, priority: ofClass });
  }
  const spec = { ...pod.spec, ...portsOnHost(pod), tolerations: [...tolerations, ...missing] };
  return { ...pod, spec: ofClass === undefined ? spec : { ...spec, priority: ofClass } };
}
/**
 * On the host's network, every container port (of init containers too) becomes a host port. kubernetes 1.36:
 * SetDefaults_Pod.
 */
function portsOnHost({ spec: { hostNetwork, containers, initContainers } }: Pod): Partial<Pod["spec"]> {
  if (hostNetwork !== true) return {};
  const init = initContainers?.map(onHostPorts);
  return { containers: containers.map(onHostPorts), ...(init && { initContainers: init }) };
}
/** kubernetes 1.36: defaultHostNetworkPorts. */
const onHostPorts = (c: Container): Container =>
  c.ports === undefined
    ? c
    : { ...c, ports: c.ports.map((p) => ({ ...p, hostPort: p.hostPort || (p.containerPort ?? 0) })) };

/** The inputs of one admission. */
export interface Prepared {
  readonly admitting: AdmissionContext;
  /**
   * The pod as it was asked about: with its pod-level resources whatever the gate, and its requests rather than its
   * allocated resources.
   */
  readonly asked: Pod;
  readonly onNode: boolean;
}

/**
 * Finds the asked pod and the pods that count beside it, each with its allocated resources. Errors: the ask has no
 * pod, names an unknown one, or the node's pods are not known.
 */
export function prepare(
  snapshot: EffectiveSnapshot,
  ask: PodAsk,
  reasons: Reasons<ReasonCode<"admission">>,
): Result<Prepared, Refusal> {
  if (snapshot.pods === undefined) {
    const message = "which pods are on the node? post them; an empty list says that there are none";
    return err({ code: "needs_input", message, needs: ["pods"] });
  }
  const config = snapshot.kubeletConfiguration;
  const here = podsOfNode(snapshot);
  const found = podToAdmit(snapshot, ask.pod, here, reasons);
  if (!found.ok) return found;
  const { pod: asked, known } = found.value;
  const quiet = new Reasons<string>("off");
  const allocated = (pod: Pod): Pod => allocatedPod(pod, snapshot, "", quiet);
  const counted = here.filter(isActive);
  if (counted.length < here.length) reasons.add("ended_pods", "pods", "used", { ended: here.length - counted.length });
  const active = counted.filter((pod) => pod !== known).map(allocated);
  const others = active.filter((pod) => isCounted(pod, snapshot));
  if (others.length < active.length)
    reasons.add("not_allocated", "pods", "used", { pods: active.length - others.length });
  const admitting: AdmissionContext = {
    pod: allocated(asked),
    node: snapshot.node ?? { metadata: {} },
    config,
    kubelet: snapshot.kubelet ?? {},
    others,
    active,
    reasons,
    needs: new Set(),
  };
  const { priority, priorityClassName = "" } = admitting.pod.spec;
  if (priority === undefined && priorityClassName !== "") admitting.needs.add("ask.pod.spec.priority");
  return ok({ admitting, asked, onNode: known !== undefined });
}

/**
 * Whether a pod counts beside another: resources must be allocated to it. Without the kubelet's allocation file, every
 * pod counts. kubelet 1.37: manager.getAllocatedPods.
 */
function isCounted(pod: Pod, { kubeletConfiguration, assignments }: EffectiveSnapshot): boolean {
  const { countsAllocatedOnly } = kubeletConfiguration.profile.behaviour;
  const entries = assignments?.allocated_pods_state?.entries;
  if (!countsAllocatedOnly || entries === undefined) return true;
  return own(entries, podUid(pod) ?? "") !== undefined;
}

/** Reads the node's allocatable. Error: the node does not list it. */
export function allocatableOf({ status }: Node): Result<ResourceList, Refusal> {
  const allocatable = status?.allocatable;
  if (allocatable !== undefined) return ok(allocatable);
  const message = "what the node can give to pods is not known";
  return err({ code: "needs_input", message, needs: ["node.status.allocatable"] });
}

/** One admission: the inputs that every handler may read. */
export interface AdmissionContext {
  /** The asked pod, with its allocated resources if the kubelet has allocated any. */
  readonly pod: Pod;
  readonly node: Node;
  readonly config: EffectiveConfiguration;
  readonly kubelet: NonNullable<Snapshot["kubelet"]>;
  /** The other pods that count on the node, with their allocated resources. */
  readonly others: readonly Pod[];
  /**
   * The pods that may be preempted: the others, and those without allocated resources. kubelet 1.37:
   * Kubelet.getAllocatedPods.
   */
  readonly active: readonly Pod[];
  readonly reasons: Reasons<ReasonCode<"admission">>;
  /** JSON paths of inputs that a handler needed and that were not posted; the handler then admits the pod. */
  readonly needs: Set<string>;
}
/** A handler's refusal: the pod's reason, and the kubelet's exact message. */
export interface Refused {
  readonly reason: string;
  readonly message: string;
}
