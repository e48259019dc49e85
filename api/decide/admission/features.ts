import type { Pod } from "../../model/pod.ts";
import { gateOn } from "../config.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import type { Admitting, Refused } from "./admitting.ts";

/** `asked`: the pod with its pod-level resources, which a kubelet without the gate does not see elsewhere. kubelet 1.36: podFeaturesAdmitHandler. */
export function podFeatureRefusals({ config }: Admitting, asked: Pod): readonly Refused[] {
  if (gateOn(config, "PodLevelResources") || !isPodLevelResourcesSet(asked)) return [];
  return [{ reason: "PodLevelResourcesNotSupported", message: "PodLevelResources feature gate is disabled" }];
}

/** Features that a pod needs of its node, by name. Of the five that 1.36 knows the others never matter to a new pod. */
const REQUIRED_BY: Readonly<Record<string, (pod: Pod) => boolean>> = {
  RestartAllContainersOnContainerExits: ({ spec }) =>
    [...spec.containers, ...(spec.initContainers ?? [])].some((c) =>
      c.restartPolicyRules?.some(({ action }) => action === "RestartAllContainers"),
    ),
  UserNamespacesHostNetworkSupport: ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false,
};

/** kubelet 1.36: declaredFeaturesAdmitHandler. */
export function declaredFeatureRefusals({ pod, node, config, needs }: Admitting): readonly Refused[] {
  if (!gateOn(config, "NodeDeclaredFeatures")) return [];
  const required = Object.keys(REQUIRED_BY).filter((name) => REQUIRED_BY[name]?.(pod));
  const declared = node.status?.declaredFeatures;
  if (required.length > 0 && declared === undefined) needs.add("node.status.declaredFeatures");
  const missing = declared === undefined ? [] : required.filter((name) => !declared.includes(name));
  if (missing.length === 0) return [];
  const message = `Pod requires node features that are not available: ${missing.join(", ")}`;
  return [{ reason: "PodFeatureUnsupported", message }];
}
