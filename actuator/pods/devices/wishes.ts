import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { DeviceLosses } from "./losses.ts";
import type { PluginLook } from "./plugin-look.ts";
import type { DeviceFault } from "./port.ts";
import { wantedResources } from "./wanted.ts";
import { notRegistered, waitsFor } from "./words.ts";

export interface WishPorts {
  readonly plugins: PluginLook;
  readonly losses: DeviceLosses;
  readonly waitMs: number;
}

/** Why a pod that wants devices is not asked about; null: it may be. `isTold`: as a refusal. */
export function whyWaits(
  { plugins, losses, waitMs }: WishPorts,
  pod: RunnablePod,
): (DeviceFault & { readonly isTold: boolean }) | null {
  const lost = losses.whyWaits(pod);
  if (lost !== null) return { ...lost, isTold: false };
  const away = wantedResources(pod).filter((resource) => !plugins.isReady(resource));
  if (away.length === 0) return null;
  if (plugins.isEarly) return { ...waitsFor(away, waitMs), isTold: false };
  // a kubelet would run the pod without them
  const unknown = away.filter((resource) => !plugins.isDeviceResource(resource));
  return unknown.length === 0 ? null : { ...notRegistered(unknown), isTold: true };
}

/** A plugin of one of its resources offers to choose. */
export const isChosenByPlugin = (plugins: PluginLook, pod: RunnablePod): boolean =>
  wantedResources(pod).some((resource) => {
    const state = plugins.stateOf(resource);
    return state?.state === "registered" && state.options.getPreferredAllocationAvailable;
  });

/** Another text once a plugin of one of its resources has registered anew. */
export const registrationOf = (plugins: PluginLook, pod: RunnablePod): string =>
  wantedResources(pod)
    .map((resource) => `${resource} ${plugins.stateOf(resource)?.generation ?? 0}`)
    .join(", ");
