import { podNamespace } from "../../model/pod.ts";
import { gateOn } from "../config.ts";
import { isStaticPod } from "../resources/critical.ts";
import type { Admitting, Refused } from "./admitting.ts";
import { conflicts, hostPorts } from "./host-ports.ts";
import { type Labels, selectsNode } from "./node-affinity.ts";
import { correctedLabels } from "./operating-system.ts";
import { tolerates } from "./tolerations.ts";

const failed = (name: string, what: string): Refused => ({
  reason: name,
  message: `Predicate ${name} failed: ${what}`,
});
const AFFINITY = failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
const NAME = failed("NodeName", "node(s) didn't match the requested node name");
const PORTS = failed("NodePorts", "node(s) didn't have free ports for the requested pod ports");
const TAINTS = failed("TaintToleration", "node(s) had taints that the pod didn't tolerate");

/**
 * Whether the node is one for this pod, whatever its room. `onlyThis`: nothing else fails, and then the kubelet reads the
 * node anew when it is the affinity, so that its labels are as they are and not as it corrected them.
 * kubelet 1.36: generalFilter.
 */
export function mismatches(admitting: Admitting, onlyThis: boolean): readonly Refused[] {
  const labels = admitting.node.metadata.labels ?? {};
  const found = withLabels(admitting, correctedLabels(labels));
  return onlyThis && found.length === 1 && found[0] === AFFINITY ? withLabels(admitting, labels) : found;
}

function withLabels(admitting: Admitting, labels: Labels): readonly Refused[] {
  const { pod, node } = admitting;
  const name = node.metadata.name;
  const wanted = pod.spec.nodeName ?? "";
  return [
    ...(selectsNode(pod, labels, name) ? [] : [AFFINITY]),
    ...(wanted === "" || name === undefined || wanted === name ? [] : [NAME]),
    ...(portTaken(admitting) ? [PORTS] : []),
    ...(untolerated(admitting) ? [TAINTS] : []),
  ];
}

/** Each holder is told with the address that it has: the pod may ask for all of them, or for one where it holds all. */
function portTaken({ pod, others, reasons }: Admitting): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  let taken = false;
  for (const other of others) {
    for (const held of hostPorts(other)) {
      if (!wanted.some((port) => conflicts(port, held))) continue;
      taken = true;
      const by = `${podNamespace(other)}/${other.metadata.name}`;
      reasons.add("host_port_taken", "predicates", "NodePorts", { ...held, by });
    }
  }
  return taken;
}

/** NoExecute only, and not for static pods. */
function untolerated({ pod, node, config, reasons }: Admitting): boolean {
  if (isStaticPod(pod)) return false;
  const comparing = gateOn(config, "TaintTolerationComparisonOperators");
  const taints = (node.spec?.taints ?? []).filter(
    (taint) => taint.effect === "NoExecute" && !tolerates(pod.spec.tolerations ?? [], taint, comparing),
  );
  for (const { key, value, effect } of taints) {
    reasons.add("taint_not_tolerated", "predicates", "TaintToleration", { key, value, effect });
  }
  return taints.length > 0;
}
