import type { PodActions } from "../lifecycle/actions.ts";
import type { CgroupView, PodCgroups } from "./cgroup-view.ts";

export const hasWork = (actions: PodActions): boolean =>
  actions.killPod ||
  actions.createSandbox ||
  actions.initToStart.length + actions.toStart.length + actions.toKill.length + actions.toRemove.length > 0;

/** Why nothing may start in a pod's cgroups; null: they are as decided. */
export function faultOf(view: CgroupView | null, place: PodCgroups | undefined): string | null {
  if (view === null || place === undefined) return "the pod's cgroups are not decided yet";
  return place.fault ?? view.cpusetFault;
}

export function wholePodErrors(
  starts: readonly string[],
  error: string | null,
  faults: Readonly<Record<string, unknown>>,
): Readonly<Record<string, { readonly reason: string; readonly message: string }>> {
  if (error === null) return {};
  return Object.fromEntries(
    starts.filter((name) => !(name in faults)).map((name) => [name, { reason: "ContainerCreating", message: error }]),
  );
}
