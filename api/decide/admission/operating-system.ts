import { own } from "../../model/own.ts";
import { OS_LABEL } from "../../model/placement.ts";
import type { Admitting, Refused } from "./admitting.ts";
import type { Labels } from "./node-affinity.ts";

/** Nodewise speaks of Linux nodes. */
const OS = "linux";

/** What preempting others cannot help: the wrong operating system, or groups that the runtime cannot set. kubelet 1.36: predicateAdmitHandler.Admit. */
export function incompatibilities({ pod, node, needs }: Admitting): readonly Refused[] {
  const refused: Refused[] = [];
  const label = own(pod.metadata.labels, OS_LABEL);
  if (label !== undefined && label !== OS) {
    refused.push({
      reason: "PodOSSelectorNodeLabelDoesNotMatch",
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    });
  }
  if (pod.spec.os !== undefined && pod.spec.os.name !== OS) {
    refused.push({
      reason: "PodOSNotSupported",
      message: "Failed to admit pod as the OS field doesn't match node OS",
    });
  }
  const strict = pod.spec.securityContext?.supplementalGroupsPolicy === "Strict";
  // the kubelet asks its node object, where nothing said is no; one made by hand may only be silent
  if (strict && node.status?.features === undefined) needs.add("node.status.features");
  if (strict && node.status?.features?.supplementalGroupsPolicy !== true) {
    refused.push({
      reason: "SupplementalGroupsPolicyNotSupported",
      message: "SupplementalGroupsPolicy=Strict is not supported in this node",
    });
  }
  return refused;
}

/** The kubelet corrects the label of its own copy of the node before it looks at affinity. kubelet 1.36: rejectPodAdmissionBasedOnOSSelector. */
export const correctedLabels = (labels: Labels): Labels =>
  Object.keys(labels).length === 0 ? labels : { ...labels, [OS_LABEL]: OS };
