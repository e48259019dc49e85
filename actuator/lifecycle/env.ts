import type { QuantityList } from "../../api/model/decision.ts";
import { own } from "../../api/model/own.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type EnvPair, expand, knownOrItself } from "./expand.ts";
import { fieldPathFault, isFieldPath, subscriptOf } from "./field-path.ts";
import type { EnvVar, PodContainer, RunnablePod } from "./pod.ts";
import { resourceText } from "./resource-text.ts";
import { isIPv4, isIPv6 } from "./spec/ip.ts";

/** What a variable can tell that the pod's object does not. */
export interface EnvFacts {
  /** The node's, its first family first. */
  readonly hostIPs: readonly string[];
  /** As the runtime says them; empty on the host's network, where they are the node's. */
  readonly podIPs: readonly string[];
  /** The node's, for limits that nobody set. */
  readonly allocatable: QuantityList;
}

/**
 * The variables of a container, in the order of the manifest; of a name that comes twice the last value. References see
 * the variables before them. Errors: the kubelet's words. kubelet 1.36: makeEnvironmentVariables.
 */
export function resolveEnv(
  container: PodContainer,
  pod: RunnablePod,
  facts: EnvFacts,
): Result<readonly EnvPair[], string> {
  const known = new Map<string, string>();
  const look = knownOrItself(known);
  for (const variable of container.env) {
    const value = "value" in variable ? ok(expand(variable.value, look)) : sourceValue(variable, container, pod, facts);
    if (!value.ok) return value;
    known.set(variable.name, value.value);
  }
  return ok([...known].map(([key, value]) => ({ key, value })));
}

function sourceValue(
  variable: Exclude<EnvVar, { value: string }>,
  container: PodContainer,
  pod: RunnablePod,
  facts: EnvFacts,
): Result<string, string> {
  return "fieldPath" in variable
    ? fieldText(variable.fieldPath, pod, facts)
    : resourceText(variable, container.name, pod, facts.allocatable);
}

/** kubelet 1.36: podFieldSelectorRuntimeValue, ExtractFieldPathAsString. */
function fieldText(path: string, pod: RunnablePod, facts: EnvFacts): Result<string, string> {
  const fault = fieldPathFault(path);
  const subscript = subscriptOf(path);
  if (subscript !== null && fault === null) {
    return ok(own(subscript.map === "metadata.labels" ? pod.labels : pod.annotations, subscript.key) ?? "");
  }
  if (!isFieldPath(path)) return err(subscript === null ? `unsupported fieldPath: ${path}` : (fault ?? ""));
  const podIPs = podAddresses(pod, facts);
  const texts = {
    "metadata.name": pod.name,
    "metadata.namespace": pod.namespace,
    "metadata.uid": pod.uid,
    "spec.nodeName": pod.spec.nodeName,
    "spec.serviceAccountName": pod.spec.serviceAccountName,
    "status.hostIP": facts.hostIPs[0] ?? "",
    "status.hostIPs": facts.hostIPs.join(","),
    "status.podIP": podIPs[0] ?? "",
    "status.podIPs": podIPs.join(","),
  };
  return ok(texts[path]);
}

/** One of each family, the node's own first. kubelet 1.36: sortPodIPs. */
export function podAddresses(pod: RunnablePod, facts: Pick<EnvFacts, "hostIPs" | "podIPs">): readonly string[] {
  const addresses = pod.spec.hostNetwork && facts.podIPs.length === 0 ? facts.hostIPs : facts.podIPs;
  const first = facts.hostIPs[0];
  const families = first === undefined || isIPv4(first) ? [isIPv4, isIPv6] : [isIPv6, isIPv4];
  return families.flatMap((isOf) => addresses.find(isOf) ?? []);
}
