import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { RuntimePod } from "../../../actuator/containerd/cri.ts";
import type { PodActions } from "../../../actuator/lifecycle/actions.ts";
import { activeSandboxOf } from "../../../actuator/lifecycle/instances.ts";
import type { RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import type { PodEvent } from "../../../actuator/lifecycle/record.ts";
import type { ContainerDevices } from "../../../actuator/pods/devices/port.ts";
import type { PodNode } from "../../../actuator/pods/networking/node-addresses.ts";
import { Images } from "../../../actuator/pods/sync/images.ts";
import { PodWorker } from "../../../actuator/pods/sync/pod-worker.ts";
import type { SyncPodRequest } from "../../../actuator/pods/sync/worker-deps.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { SimClock } from "../../sim/clock.ts";
import { type Program, SERVES } from "../../sim/fake-pod-parts.ts";
import { FakePodRuntime } from "../../sim/fake-pod-runtime.ts";
import { PodTime } from "../../sim/pod-time.ts";
import { FakeMounter } from "./fake-mounter.ts";
import { scratch } from "./scratch.ts";

export const ME = "nodewise-a";
export const NODE: PodNode = {
  hostIPs: ["192.168.0.1"],
  allocatable: {},
  clusterDomain: "",
  clusterDNS: ["10.96.0.10"],
  resolvConf: { servers: [], searches: [], options: [] },
  cgroupVersion: 2,
  security: { seccompDefault: false, seccompDirectory: "/var/lib/kubelet/seccomp", maskedPaths: [] },
};

/** A worker with a fake runtime and real directories. */
export function workerWorld(devices?: ContainerDevices) {
  const dir = scratch();
  const roots = { podsDirectory: join(dir, "pods"), podLogsDirectory: join(dir, "logs") };
  for (const root of Object.values(roots)) mkdirSync(root);
  const time = new PodTime(new SimClock(1_000_000));
  const runtime = new FakePodRuntime(time);
  runtime.images.set("busybox:latest", { id: "sha256:1" });
  const events: PodEvent[] = [];
  const mounter = new FakeMounter();
  const worker = new PodWorker({
    profile: v1_36,
    runtime,
    images: new Images(runtime, time, { serializeImagePulls: true, maxParallelImagePulls: null }),
    mounter,
    ...(devices && { devices }),
    clock: time,
    onEvent: (event) => events.push(event),
    owner: ME,
    roots,
    node: () => NODE,
    cgroupParentOf: ({ uid }) => `/kubepods/pod${uid}`,
    sandboxValuesOf: () => undefined,
    memoryBytes: () => null,
  });
  const seenOf = async (uid = "uid-1"): Promise<RuntimePod | null> => {
    const pods = await runtime.pods();
    return pods.ok ? (pods.value.get(uid) ?? null) : null;
  };
  const sync = async (pod: RunnablePod, actions: Partial<PodActions>, more: Partial<SyncPodRequest> = {}) => {
    const seen = await seenOf(pod.uid);
    const sandboxId = (seen === null ? undefined : activeSandboxOf(seen))?.id ?? null;
    const signal = new AbortController().signal;
    const asked = {
      pod,
      runtimePod: seen,
      actions: { ...NO_ACTIONS, sandboxId, ...actions },
      valuesOf: () => ({}),
      signal,
      ...more,
    };
    return time.drive(worker.sync(asked));
  };
  /** Starts all containers of a pod. */
  const up = (pod: RunnablePod) =>
    sync(pod, {
      createSandbox: true,
      killPod: true,
      sandboxId: null,
      initToStart: pod.spec.initContainers.map(({ name }) => ({ name, attempt: 0 })),
      toStart: pod.spec.containers.map(({ name }) => ({ name, attempt: 0 })),
    });
  const end = async (
    pod: RunnablePod | null,
    graceSeconds = 30,
    signal = new AbortController().signal,
    uid = "uid-1",
  ) => {
    const seen = await seenOf(pod?.uid ?? uid);
    if (seen === null) throw new Error("nothing of the pod is there");
    return time.drive(worker.end({ pod, runtimePod: seen, graceSeconds, signal }));
  };
  const forget = async (pod: RunnablePod, signal = new AbortController().signal) =>
    time.drive(worker.forget(pod, await seenOf(pod.uid), signal));
  const takeMessages = () =>
    events
      .splice(0)
      .map(({ reason, message, container }) => `${reason}${container === null ? "" : ` ${container}`}: ${message}`);
  /** The runtime's calls since the last time, without calls that only read. */
  const calls = () => runtime.calls.splice(0).filter((call) => !/^(?:List|ImageStatus)/.test(call));
  return { dir, roots, time, runtime, mounter, worker, seenOf, sync, up, end, forget, takeMessages, calls };
}
export const NO_ACTIONS: PodActions = {
  killPod: false,
  createSandbox: false,
  sandboxId: null,
  attempt: 0,
  initToStart: [],
  toStart: [],
  toKill: [],
  toRemove: [],
  heldBack: [],
};

/** A pod that runs, with its programs by name, and without recorded calls and messages. */
export async function upWith(web: RunnablePod, programs: Readonly<Record<string, Partial<Program>>> = {}) {
  const world = workerWorld();
  await world.up(web);
  world.runtime.programOf = ({ metadata }) => ({ ...SERVES, ...programs[metadata.name] });
  world.calls();
  world.takeMessages();
  const from = world.time.monotonicMs();
  return { ...world, seconds: () => (world.time.monotonicMs() - from) / 1000 };
}
