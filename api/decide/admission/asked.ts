import type { Refusal } from "../../model/decision.ts";
import type { Toleration } from "../../model/placement.ts";
import { type Container, isActive, isTerminal, type Pod, podNamespace, podUid } from "../../model/pod.ts";
import { SYSTEM_PRIORITY_CLASSES } from "../../model/priority-classes.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Reasons } from "../reasons.ts";

export interface Asked {
  readonly pod: Pod;
  /** The active pod of the snapshot that it is. */
  readonly known: Pod | undefined;
}
const nameOf = (pod: Pod): string => `${podNamespace(pod)}/${pod.metadata.name}`;

/**
 * The pod of the ask, as the API server would have made it where it never was there. `here`: the pods of the node.
 * Errors: no pod in the ask, or a name that the snapshot does not have.
 */
export function askedPod(
  snapshot: Snapshot,
  ask: Pod | string | null,
  here: readonly Pod[],
  reasons: Reasons,
): Result<Asked, Refusal> {
  if (ask === null) {
    const message = "which pod is to come in? post it, or name one of the snapshot";
    return err({ code: "needs_input", message, needs: ["ask.pod"] });
  }
  const pod = typeof ask === "string" ? snapshot.pods?.find((p) => nameOf(p) === ask) : ask;
  if (pod === undefined) {
    return err({ code: "no_such_pod", message: `the snapshot has no pod \`${ask}\``, needs: ["pods"] });
  }
  const uid = podUid(pod);
  const isIt = (p: Pod): boolean => (uid === undefined ? nameOf(p) === nameOf(pod) : podUid(p) === uid);
  const known = here.find((p) => isActive(p) && isIt(p));
  if (known !== undefined) reasons.add("asked_again", nameOf(pod), "onNode");
  else if (isTerminal(pod)) reasons.add("pod_has_ended", nameOf(pod), "onNode", { phase: pod.status?.phase });
  return ok({ pod: asCreated(pod, reasons), known });
}

/** kubernetes 1.36: the admission plugin DefaultTolerationSeconds. */
const DEFAULT_TOLERATIONS: readonly Toleration[] = ["not-ready", "unreachable"].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: "Exists",
  effect: "NoExecute",
}));

/** What the API server adds to a pod that is created; a pod with a uid has been there, a static one never goes there. */
function asCreated(pod: Pod, reasons: Reasons): Pod {
  if (podUid(pod) !== undefined || pod.metadata.annotations?.["kubernetes.io/config.source"] !== undefined) return pod;
  const { priority, priorityClassName, tolerations = [] } = pod.spec;
  const missing = DEFAULT_TOLERATIONS.filter(
    ({ key }) => !tolerations.some((t) => (t.key || key) === key && (t.effect || "NoExecute") === "NoExecute"),
  );
  const ofClass = priority ?? SYSTEM_PRIORITY_CLASSES.get(priorityClassName ?? "");
  if (ofClass !== priority) {
    reasons.add("priority_of_class", nameOf(pod), "critical", { priorityClassName, priority: ofClass });
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
