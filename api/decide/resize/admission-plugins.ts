import { compare, ZERO } from "../../model/amount.ts";
import { OS_LABEL } from "../../model/placement.ts";
import { isSidecar, type Pod } from "../../model/pod.ts";
import { gateOn } from "../../profiles/effective.ts";
import { isGateOn } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";
import { podRequests } from "../resources/pod-resources.ts";
import { qosClass } from "../resources/qos.ts";
import {
  because,
  differIn,
  differs,
  type Infeasible,
  type NodeResources,
  pairsOf,
  RESIZABLE,
  type ResizeNode,
  unitsIn,
} from "./refusals.ts";
import { changedVolumes } from "./volumes.ts";

const isChanged = (desired: Pod, before: Pod): boolean =>
  differIn(before.spec.resources, desired.spec.resources) ||
  pairsOf(desired, before).some(([now, then]) => differIn(now.resources, then.resources)) ||
  (desired.spec.volumes ?? []).some((volume, i) => {
    const [now, then] = [before.spec.volumes?.[i], volume].map((v) => v?.emptyDir?.sizeLimit?.amount);
    return now === undefined || then === undefined ? now !== then : compare(now, then) !== 0;
  });

/**
 * Why an admission plugin of the API server refuses a resize; null: none does. A resize without changes is not
 * checked.
 */
export function whyNotAdmitted(desired: Pod, before: Pod, node: ResizeNode): Infeasible | null {
  if (!isChanged(desired, before)) return null;
  const { config, allocatable } = node;
  const { metadata } = node.node ?? {};
  const name = metadata?.name ?? "";
  const features = lackingFeatures(desired, before, node);
  if (features.length > 0) {
    const message = `pod update requires features ${features.join(", ")} which are not available on node "${name}"`;
    return because("declared_features", message);
  }
  if (!config.profile.behaviour.resizesBeyondNode) return null;
  const os = metadata?.labels?.[OS_LABEL] ?? "linux";
  if (os === "linux") return beyondAllocatable(desired, allocatable);
  return because("platform", `pod resize is only supported on linux nodes, node "${name}" is ${quote(os)}`);
}

/** Whether a resize needs a node feature, by the feature's name. */
const NEEDS: Readonly<Record<string, (now: Pod, then: Pod) => boolean>> = {
  GuaranteedQoSPodCPUResize: (now, then) =>
    qosClass(now) === "Guaranteed" &&
    pairsOf(then, now).some(
      ([a, b]) =>
        then.spec.containers.includes(b) && differs(a.resources?.requests, b.resources?.requests, "cpu", ZERO),
    ),
  InPlacePodLevelResourcesVerticalScaling: (now, then) => differIn(now.spec.resources, then.spec.resources),
  InPlacePodVerticalScalingInitContainers: (now, then) =>
    pairsOf(then, now).some(
      ([a, b]) => !isSidecar(a) && !then.spec.containers.includes(b) && differIn(a.resources, b.resources),
    ),
  InPlacePodVerticalScalingMemoryBackedVolumes: (now, then) => changedVolumes(then, now).length > 0,
};
/** kubernetes 1.36: InferForPodUpdate; for a node that tells nothing: DiscoverNodeFeatures. */
function lackingFeatures(desired: Pod, before: Pod, { config, node }: ResizeNode): readonly string[] {
  if (node === undefined || !gateOn(config, "NodeDeclaredFeatures")) return [];
  const { profile, featureGates, cpuManagerPolicy } = config;
  const isDeclared = (name: string): boolean => {
    if (name !== "GuaranteedQoSPodCPUResize") return isGateOn(profile, featureGates, name);
    const exclusive = gateOn(config, "InPlacePodVerticalScalingExclusiveCPUs");
    return cpuManagerPolicy === "none" || (cpuManagerPolicy === "static" && exclusive);
  };
  const declared = node.status?.declaredFeatures;
  return profile.behaviour.resizeFeatures.filter(
    (name) => NEEDS[name]?.(before, desired) === true && !(declared?.includes(name) ?? isDeclared(name)),
  );
}

/** kubernetes 1.36: validateRequestsWithinAllocatable. */
function beyondAllocatable(desired: Pod, allocatable: NodeResources): Infeasible | null {
  const requests = podRequests(desired);
  const figures = RESIZABLE.flatMap((name) => {
    const has = allocatable.get(name)?.amount ?? ZERO;
    if (compare(requests.get(name) ?? ZERO, has) <= 0) return [];
    return [`${name}, requested: ${unitsIn(name, requests.get(name))}, allocatable: ${unitsIn(name, has)}`];
  });
  if (figures.length === 0) return null;
  return because("capacity", `node didn't have enough allocatable resources: ${figures.join("; ")}`);
}
