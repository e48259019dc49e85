import type { CpuChange } from "../../model/cpus.ts";
import type { PodRef } from "../../model/forms.ts";
import { type ContainerStatus, containersOf, type Pod, podNamespace, podUid } from "../../model/pod.ts";
import type { CpuManager } from "./manager.ts";
import { type CpuSet, cpuText, sameCpus } from "./sets.ts";

/** Why a container's cpuset is not changed now. */
type SkipCode = "no_status" | "no_container_id" | "waiting" | "terminated" | "no_cpus";
interface SkippedContainer {
  readonly pod: PodRef;
  /** The container's name; null: the whole pod is skipped. */
  readonly container: string | null;
  readonly code: SkipCode;
}
interface Reconciled {
  /** The changes in the order in which they are made. */
  readonly changes: readonly CpuChange[];
  readonly skipped: readonly SkippedContainer[];
}
/** Returns a running container's current CPUs; undefined: not known, so the cpuset is written in any case. */
export type CurrentCpus = (uid: string, container: string, containerId: string) => CpuSet | undefined;

/**
 * Finds the running containers whose cpuset must change: to their exclusive CPUs or the shared pool. The kubelet
 * follows a Go map of pods; here pods without exclusive CPUs come first, in the given order, so that they leave CPUs
 * before others move there. Within a pod, init containers come first. Policy `none` changes nothing. kubelet 1.36:
 * reconcileState.
 */
export function reconcile(manager: CpuManager, active: readonly Pod[], current: CurrentCpus): Reconciled {
  const changes: CpuChange[] = [];
  const skipped: SkippedContainer[] = [];
  if (!manager.isManaging) return { changes, skipped };
  const { defaultCpus, assignments } = manager.state();
  const isOwner = (pod: Pod): boolean => assignments.has(podUid(pod) ?? "");
  for (const pod of [...active.filter((p) => !isOwner(p)), ...active.filter(isOwner)]) {
    const ref: PodRef = { namespace: podNamespace(pod), name: pod.metadata.name, uid: podUid(pod) ?? "" };
    const skip = (container: string | null, code: SkipCode) => skipped.push({ pod: ref, container, code });
    if (pod.status === undefined) {
      skip(null, "no_status");
      continue;
    }
    const statuses = [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])];
    for (const { name } of containersOf(pod)) {
      const running = runningId(statuses.filter((status) => status.name === name));
      if (running.code !== undefined) {
        skip(name, running.code);
        continue;
      }
      const cpus = manager.cpusOf(ref.uid, name) ?? defaultCpus;
      if (cpus.size === 0) {
        skip(name, "no_cpus");
        continue;
      }
      const now = current(ref.uid, name, running.id);
      if (now !== undefined && sameCpus(now, cpus)) continue;
      const from = now === undefined ? null : cpuText(now);
      changes.push({ pod: ref, container: name, cpus: cpuText(cpus), containerId: running.id, from });
    }
  }
  return { changes, skipped };
}

type Running = { readonly id: string; readonly code?: undefined } | { readonly code: SkipCode };
/** kubelet 1.36: findContainerIDByName, findContainerStatusByName. */
function runningId(statuses: readonly ContainerStatus[]): Running {
  const withId = statuses.find(({ containerID = "" }) => containerID !== "");
  const parts = (withId?.containerID ?? "").replace(/^"+|"+$/g, "").split("://");
  if (parts.length !== 2) return { code: "no_container_id" };
  const state = statuses[0]?.state;
  if (state?.terminated !== undefined) return { code: "terminated" };
  // a state that is neither running, terminated nor waiting counts as waiting
  if (state?.running === undefined) return { code: "waiting" };
  return { id: parts[1] as string };
}
