import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { RuntimePod } from "../../../actuator/containerd/cri.ts";
import { type PendingResize, type PodEnd, type PodRecord, podStateOf } from "../../../actuator/lifecycle/record.ts";
import type { StartError } from "../../../actuator/lifecycle/status/containers.ts";
import type { PodStatus } from "../../../actuator/lifecycle/status/status.ts";
import type { SmallPod } from "./small-pods.ts";

/** A pod, its known state, and the answers of the kubelet's own code. */
export interface KubeletCase {
  readonly object: SmallPod;
  readonly previous: PodStatus | null;
  readonly seen: RuntimePod;
  readonly backOff: PodRecord["backOff"];
  readonly nowMs: number;
  readonly hostIPs: readonly string[];
  readonly errors: Readonly<Record<string, StartError>>;
  readonly resizeRestarts: readonly string[];
  readonly state: PodRecord["state"];
  readonly end: PodEnd | null;
  readonly resize: PendingResize | null;
}
export interface KubeletAnswer {
  readonly actions: {
    readonly killPod: boolean;
    readonly createSandbox: boolean;
    readonly sandboxId: string;
    readonly attempt: number;
    readonly initToStart: readonly string[] | null;
    readonly toStart: readonly string[] | null;
    readonly toKill:
      | readonly { readonly containerId: string; readonly name: string; readonly message: string }[]
      | null;
    /** Names of init containers only. */
    readonly removed: readonly string[] | null;
    readonly heldBack: readonly HeldBackAnswer[] | null;
    /** Maps a container's name to its delay after a start, in milliseconds. */
    readonly nextDelay: Readonly<Record<string, number>>;
  };
  readonly stops: readonly { readonly name: string; readonly waitsFor: readonly string[] }[] | null;
  readonly status: PodStatus;
  /** The phase of the pod unless it is ended from outside. */
  readonly natural: string;
  readonly grace: number;
}
interface HeldBackAnswer {
  readonly name: string;
  readonly untilMs: number;
  readonly delayMs: number;
  readonly message: string;
}

export function kubeletCases(file: string): readonly (readonly [KubeletCase, KubeletAnswer])[] {
  return gunzipSync(readFileSync(file))
    .toString()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as readonly [KubeletCase, KubeletAnswer])
    .map(([one, answer]) => [{ ...one, state: podStateOf(one.state) ?? one.state }, answer]);
}
