import { err, ok, type Result } from "../../base/result.ts";
import type { Pod, PodClaim } from "../../model/pod.ts";
import { podNamespace, podUid } from "../../model/pod.ts";
import type { ResourceClaim } from "../../model/resource-claim.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";

/** The claim of an entry of a pod; null: none was needed. kubernetes 1.37: resourceclaim.Name. */
export function claimName(pod: Pod, podClaim: PodClaim): Result<ClaimName, string> {
  const who = `pod "${podNamespace(pod)}/${pod.metadata.name}"`;
  if (podClaim.resourceClaimName !== undefined) return ok({ name: podClaim.resourceClaimName, ofTemplate: false });
  if (podClaim.resourceClaimTemplateName === undefined) {
    const entry = quote(podClaim.name ?? "");
    return err(`${who}, spec.resourceClaim ${entry}: none of the supported fields are set`);
  }
  const made = pod.status?.resourceClaimStatuses?.find(({ name }) => name === podClaim.name);
  if (made === undefined) return err(`${who}: ResourceClaim not created yet`);
  return ok({ name: made.resourceClaimName ?? null, ofTemplate: true });
}
interface ClaimName {
  readonly name: string | null;
  /** True: it must have been created for this pod. */
  readonly ofTemplate: boolean;
}

/** The pod's claims, including the scheduler's one for extended resources if the gate DRAExtendedResource is on. */
export function podClaims({ spec, status }: Pod, extended: boolean): readonly PodClaim[] {
  const claims = spec.resourceClaims ?? [];
  const { extendedResourceClaimStatus: made } = status ?? {};
  return made === undefined || !extended ? claims : [...claims, { resourceClaimName: made.resourceClaimName ?? "" }];
}

/** The pod's group, if claims of groups count: the gate DRAWorkloadResourceClaims. */
const groupOf = ({ spec }: Pod): string | undefined => spec.schedulingGroup?.podGroupName;
const GROUP_API = "scheduling.k8s.io";

/** Why a claim is not the pod's; undefined: it is. kubernetes 1.37: resourceclaim.IsForPod. */
export function notForPod(
  pod: Pod,
  claim: ResourceClaim,
  groups: boolean,
  behaviour: Behaviour["claims"],
): string | undefined {
  const { metadata } = claim;
  const namespace = podNamespace(pod);
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (controller !== undefined && controller.uid === podUid(pod)) return undefined;
  const group = groupOf(pod);
  const [name, owner] = [metadata.name, pod.metadata.name].map((one) => `${namespace}/${one}`) as [string, string];
  if (!groups || (group === undefined && behaviour.podsWithoutGroup === "own-claims"))
    return behaviour.notOwner(name, owner);
  if (group === undefined) return NIL_POINTER;
  const ofGroup =
    controller?.kind === "PodGroup" &&
    controller.name === group &&
    controller.apiVersion?.startsWith(`${GROUP_API}/`) === true;
  return ofGroup
    ? undefined
    : `ResourceClaim ${name} was not created for Pod ${owner} (neither Pod nor PodGroup ${group} is the owner)`;
}
/** Go's message when the kubelet crashes. */
export const NIL_POINTER = "panic: runtime error: invalid memory address or nil pointer dereference";

/** kubernetes 1.37: resourceclaim.IsReservedForPod. */
export function isReservedFor(pod: Pod, { status }: ResourceClaim, groups: boolean): boolean {
  const group = groupOf(pod);
  return (status?.reservedFor ?? []).some(
    ({ uid, apiGroup, resource, name }) =>
      uid === podUid(pod) ||
      (groups && group !== undefined && apiGroup === GROUP_API && resource === "podgroups" && name === group),
  );
}
