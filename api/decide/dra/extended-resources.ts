import { value } from "../../model/amount.ts";
import type { ExtendedResource } from "../../model/claims.ts";
import type { ReasonCode } from "../../model/decision.ts";
import { containersOf, namespacedPodName, type Pod, podRef } from "../../model/pod.ts";
import type { Dra } from "../../model/resource-claim.ts";
import { CLASS_PREFIX } from "../../model/resource-name.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { listedResources, pluginResources, reportsDevices } from "../allocatable/capacity.ts";
import type { ReasonRecorder } from "../reasons.ts";
import { isClaimable } from "./container-devices.ts";

/**
 * For each extended resource that pods' containers request: whether it comes from a claim or from a device plugin.
 * `extended`: the gate DRAExtendedResource is on. kubelet 1.36: isDRAExtendedResource, isDevicePluginResource.
 */
export function givenExtended(
  snapshot: EffectiveSnapshot,
  pods: readonly Pod[],
  extended: boolean,
  reasons: ReasonRecorder<ReasonCode<"claims">>,
): readonly ExtendedResource[] {
  const { claimedDevicesLeft, claims: behaviour } = snapshot.kubeletConfiguration.profile.behaviour;
  const [plugins, listed] = [pluginResources(snapshot), listedResources(snapshot)];
  const ofContainer = (pod: Pod, { name: container, resources }: ReturnType<typeof containersOf>[number]) => {
    const made = pod.status?.extendedResourceClaimStatus;
    const at = namespacedPodName(pod);
    return Object.entries(resources?.requests ?? {}).flatMap(([resource, { amount }]) => {
      if (value(amount) === 0 || !isClaimable(resource, behaviour)) return [];
      const mapped = (made?.requestMappings ?? []).filter(
        (one) => one.containerName === container && one.resourceName === resource,
      );
      const isClaimed = mapped.length > 0 && extended;
      const plugin = plugins.has(resource);
      const numbers = { container, resource };
      const [by, code] = isClaimed ? BY_CLAIM : sourceOf(snapshot, plugin, listed.has(resource));
      reasons.add(code, at, "extendedResources", numbers);
      if (mapped.length > 0 && !extended) reasons.add("resource_gate_off", at, "extendedResources", numbers);
      if (isClaimed && plugin && !claimedDevicesLeft) reasons.add("resource_by_both", at, "extendedResources", numbers);
      const claim = mapped.length > 0 ? (made?.resourceClaimName ?? "") : null;
      const requests = mapped.map(({ requestName = "" }) => requestName);
      const classes = classesOf(snapshot.dra ?? {}, resource);
      return [{ pod: podRef(pod), container, resource, by, claim, requests, classes, plugin }];
    });
  };
  return pods.flatMap((pod) => containersOf(pod).flatMap((container) => ofContainer(pod, container)));
}
type Source = readonly [ExtendedResource["by"], ReasonCode<"claims">];
const BY_CLAIM: Source = ["claim", "resource_by_claim"];

function sourceOf(snapshot: EffectiveSnapshot, plugin: boolean, listed: boolean): Source {
  const isReported = reportsDevices(snapshot);
  if (plugin) return ["device-plugin", isReported ? "resource_by_plugin" : "resource_listed"];
  if (listed) return ["node", "resource_counted"];
  const { capacity, allocatable } = snapshot.node?.status ?? {};
  return isReported || (capacity ?? allocatable) !== undefined
    ? ["nothing", "resource_by_nothing"]
    : [null, "resource_not_known"];
}
const classesOf = ({ deviceClasses = [] }: Dra, resource: string): readonly string[] =>
  deviceClasses
    .filter(
      ({ metadata, spec }) => spec?.extendedResourceName === resource || resource === `${CLASS_PREFIX}${metadata.name}`,
    )
    .map(({ metadata }) => metadata.name)
    .sort();
