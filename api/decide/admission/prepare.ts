import type { PodAsk } from "../../model/ask.ts";
import type { ReasonCode, Refusal } from "../../model/decision.ts";
import type { ResourceList } from "../../model/fields.ts";
import { own } from "../../model/own.ts";
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
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveConfiguration, EffectiveSnapshot } from "../../profiles/effective.ts";
import { allocatedPod, podsOfNode } from "../pods/node-pods.ts";
import { Reasons } from "../reasons.ts";

interface Asked {
  readonly pod: Pod;
  /** The active pod of the snapshot that it is. */
  readonly known: Pod | undefined;
}

/**
 * The pod of the ask, as the API server would have made it where it never was there. `here`: the pods of the node.
 * Errors: no pod in the ask, or a name that the snapshot does not have.
 */
function podToAdmit(
  snapshot: Snapshot,
  ask: Pod | string | null,
  here: readonly Pod[],
  reasons: Reasons<ReasonCode<"admission">>,
): Result<Asked, Refusal> {
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
 * Adds to a pod what the API server adds when it is created. A pod with a uid has been there; a static one never goes there.
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
/** On the host's network a port of a container, of an init container too, is one of the host. kubernetes 1.36: SetDefaults_Pod. */
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

/** One admission made ready. */
export interface Prepared {
  readonly admitting: Admitting;
  /** With its pod-level resources whatever the gate, and what it asks for rather than what is allocated. */
  readonly asked: Pod;
  readonly onNode: boolean;
}

/**
 * Finds the asked pod and those that count beside it, with what the kubelet has allocated to each.
 * Errors: no pod in the ask, or one that is not there; the node's pods are not known.
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
  const admitting: Admitting = {
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
 * Whether a pod counts beside another: to one that is not admitted yet nothing is allocated. Where nobody posted the kubelet's file,
 * every pod is taken to be. kubelet 1.37: manager.getAllocatedPods.
 */
function isCounted(pod: Pod, { kubeletConfiguration, assignments }: EffectiveSnapshot): boolean {
  const { countsAllocatedOnly } = kubeletConfiguration.profile.behaviour;
  const entries = assignments?.allocated_pods_state?.entries;
  if (!countsAllocatedOnly || entries === undefined) return true;
  return own(entries, podUid(pod) ?? "") !== undefined;
}

/** Reads what the node can give to pods. Error: it does not say. */
export function allocatableOf({ status }: Node): Result<ResourceList, Refusal> {
  const allocatable = status?.allocatable;
  if (allocatable !== undefined) return ok(allocatable);
  const message = "what the node can give to pods is not known";
  return err({ code: "needs_input", message, needs: ["node.status.allocatable"] });
}

/** One admission: what every handler may look at. */
export interface Admitting {
  /** As asked, but for the resources that the kubelet has allocated. */
  readonly pod: Pod;
  readonly node: Node;
  readonly config: EffectiveConfiguration;
  readonly kubelet: NonNullable<Snapshot["kubelet"]>;
  /** The other pods that count on the node, with their allocated resources. */
  readonly others: readonly Pod[];
  /** Those that may be ended for it: others to which nothing is allocated yet as well. kubelet 1.37: Kubelet.getAllocatedPods. */
  readonly active: readonly Pod[];
  readonly reasons: Reasons<ReasonCode<"admission">>;
  /** JSON paths of what a handler wanted to know and nobody posted; it lets the pod pass there. */
  readonly needs: Set<string>;
}
/** Why a handler refuses: the pod's reason, and the message to the byte. */
export interface Refused {
  readonly reason: string;
  readonly message: string;
}
