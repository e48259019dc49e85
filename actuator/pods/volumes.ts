import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { PodVolume, RunnablePod } from "../lifecycle/pod.ts";
import { makeEmptyDir } from "./empty-dir.ts";
import { goErrorText } from "./go-error.ts";
import { checkHostPath } from "./host-path.ts";
import type { Mounter } from "./mounter.ts";
import { emptyDirAt } from "./places.ts";
import { makeMarked } from "./pod-mark.ts";
import type { PodPlaces } from "./ports.ts";

export interface VolumeFault {
  readonly volume: string;
  readonly message: string;
}

/**
 * The pod's directory, with its maker's mark, and what the kubelet has in it. Error: what the system refused.
 * kubelet 1.36: makePodDataDirs.
 */
export function makePodDirectory({ podDirectory }: PodPlaces, owner: string): Result<null, string> {
  const made = makeMarked(podDirectory, owner);
  if (!made.ok) return made;
  try {
    for (const part of ["volumes", "containers"]) mkdirSync(join(podDirectory, part), { recursive: true, mode: 0o750 });
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

/**
 * Makes all volumes of a pod, or finds them again; one that cannot be made keeps no other from being made.
 * @param memoryBytes the pod's memory, which no volume in memory may exceed; null: as its own limit says.
 */
export async function makeVolumes(
  pod: RunnablePod,
  places: PodPlaces,
  memoryBytes: number | null,
  mounter: Mounter,
): Promise<readonly VolumeFault[]> {
  const faults: VolumeFault[] = [];
  for (const volume of pod.spec.volumes) {
    const made = await makeVolume(volume, pod, places, memoryBytes, mounter);
    if (!made.ok) faults.push({ volume: volume.name, message: made.error });
  }
  return faults;
}

async function makeVolume(
  volume: PodVolume,
  pod: RunnablePod,
  places: PodPlaces,
  memoryBytes: number | null,
  mounter: Mounter,
): Promise<Result<null, string>> {
  if ("hostPath" in volume) return checkHostPath(volume.hostPath.path, volume.hostPath.type);
  const { medium, sizeLimitBytes } = volume.emptyDir;
  const at = emptyDirAt(places, volume.name);
  if (!at.ok) return at;
  const sizeBytes = smaller(sizeLimitBytes, memoryBytes);
  return makeEmptyDir({ at: at.value, medium, sizeBytes, fsGroup: pod.spec.securityContext.fsGroup }, mounter);
}
const smaller = (one: number | null, other: number | null): number | null =>
  one === null || one === 0 ? other : other === null ? one : Math.min(one, other);

/** Where a volume is on the machine. Error: a sentence. */
export const volumeAt = (volume: PodVolume, places: PodPlaces): Result<string, string> =>
  "hostPath" in volume ? ok(volume.hostPath.path) : emptyDirAt(places, volume.name);
