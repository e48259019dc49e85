import { own } from "../../base/own.ts";
import { compare, isZero } from "../../model/amount.ts";
import type { Pod } from "../../model/pod.ts";
import type { Quantity } from "../../model/quantity.ts";
import type { VolumePatch } from "../../model/resize.ts";

export type Volume = NonNullable<Pod["spec"]["volumes"]>[number];
/** The size of a volume in memory that has one. kubelet 1.37: VolHasMemoryBackedEmptyDirSizeLimit. */
const sizeInMemory = ({ emptyDir }: Volume): Quantity | undefined =>
  emptyDir?.medium === "Memory" && emptyDir.sizeLimit !== undefined && !isZero(emptyDir.sizeLimit.amount)
    ? emptyDir.sizeLimit
    : undefined;

/**
 * The in-memory volumes whose desired size differs from the allocated one, in the pod's order. Without the gate
 * InPlacePodVerticalScalingMemoryBackedVolumes no sizes are allocated. kubelet 1.37:
 * IsMemoryBackedVolumeResizeRequested.
 */
export function changedVolumes(
  desired: Pod,
  allocated: Pod,
): readonly { readonly name: string; readonly from: Quantity; readonly to: Quantity }[] {
  const before = new Map(allocated.spec.volumes?.map((volume) => [volume.name, volume.emptyDir?.sizeLimit]));
  return (desired.spec.volumes ?? []).flatMap((volume) => {
    const [from, to] = [before.get(volume.name), sizeInMemory(volume)];
    if (from === undefined || to === undefined || compare(from.amount, to.amount) === 0) return [];
    return [{ name: volume.name, from, to }];
  });
}

/** The pod with the sizes that are allocated to its volumes in memory. kubelet 1.37: updateEmptyDirVolumeLimitsFromAllocation. */
export function withSizes(pod: Pod, sizes: Readonly<Record<string, Quantity>>): Pod {
  const volumes = pod.spec.volumes?.map((volume) => {
    const sizeLimit = sizeInMemory(volume) && own(sizes, volume.name);
    return sizeLimit === undefined ? volume : { ...volume, emptyDir: { ...volume.emptyDir, sizeLimit } };
  });
  return { ...pod, spec: { ...pod.spec, volumes } };
}

/** A strategic merge by name: what the pod does not have comes last. */
export function mergedVolumes(before: readonly Volume[], patches: readonly VolumePatch[]): Volume[] {
  const byName = new Map<string, Volume>(before.map((volume) => [volume.name, volume]));
  for (const patch of patches) {
    const { name, emptyDir } = patch;
    const volume = byName.get(name);
    byName.set(name, {
      ...(volume ?? { name }),
      ...(emptyDir !== undefined && { emptyDir: { ...volume?.emptyDir, ...emptyDir } }),
    });
  }
  return [...byName.values()];
}
