import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { DeviceLosses } from "./losses.ts";
import type { PluginLook } from "./plugin-look.ts";
import type { DeviceFault } from "./port.ts";
import { wantedDevices } from "./wanted.ts";
import { notRegistered, waitsFor } from "./words.ts";

export interface WishPorts {
  readonly plugins: PluginLook;
  readonly losses: DeviceLosses;
  readonly waitMs: number;
}
const resourcesOf = (pod: RunnablePod): readonly string[] =>
  [...new Set([...wantedDevices(pod).values()].flatMap((amounts) => [...amounts.keys()]))].sort();

/** Why a pod that wants devices is not asked about; null: it may be. `isTold`: as a refusal. */
export function whyWaits(
  { plugins, losses, waitMs }: WishPorts,
  pod: RunnablePod,
): (DeviceFault & { readonly isTold: boolean }) | null {
  const lost = losses.whyWaits(pod);
  if (lost !== null) return { ...lost, isTold: false };
  const away = resourcesOf(pod).filter((resource) => !plugins.isReady(resource));
  if (away.length === 0) return null;
  if (plugins.isEarly) return { ...waitsFor(away, waitMs), isTold: false };
  // a kubelet would run the pod without them
  const unknown = away.filter((resource) => !plugins.isDeviceResource(resource));
  return unknown.length === 0 ? null : { ...notRegistered(unknown), isTold: true };
}

/** A plugin of one of its resources offers to choose. */
export const isChosenByPlugin = (plugins: PluginLook, pod: RunnablePod): boolean =>
  resourcesOf(pod).some((resource) => {
    const state = plugins.stateOf(resource);
    return state?.state === "registered" && state.options.getPreferredAllocationAvailable;
  });

/** Another text once a plugin of one of its resources has registered anew. */
export const registrationOf = (plugins: PluginLook, pod: RunnablePod): string =>
  resourcesOf(pod)
    .map((resource) => `${resource} ${plugins.stateOf(resource)?.generation ?? 0}`)
    .join(", ");
