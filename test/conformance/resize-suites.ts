import { pageSizeUnit } from "../../api/decide/hugepages.ts";
import { decideResize } from "../../api/decide/kinds/resize.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeResizeAsk, type ResizeDecision } from "../../api/model/resize.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { type Suite, suite } from "./suite.ts";

interface PodJson {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status?: {
    readonly containerStatuses?: readonly { readonly state?: { readonly running?: Json }; readonly resources?: Json }[];
  };
}

function readSnapshot(input: Json): Snapshot {
  const { pods, ...rest } = input as { readonly pods: readonly unknown[] };
  const decoded = decodeSnapshot(rest);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  // the recorded functions do not set default requests, so the pods are read without that step
  return { ...decoded.value, pods: pods.map(decodedPod) };
}
function decide(snapshot: Snapshot, asked: unknown, profile: Profile): ResizeDecision {
  const decoded = decodeResizeAsk(asked);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const ask = decoded.value;
  const answer = decideResize({ snapshot: effectiveSnapshot(snapshot, profile), facts: {}, ask, explain: "off" });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value.decision;
}

interface QueueInput {
  readonly kubeletConfiguration: Json;
  readonly node: Json;
  readonly pods: readonly PodJson[];
  readonly allocated: Json;
  readonly pushed: readonly string[];
  readonly cgroupVersion?: 1 | 2;
}
const queue = suite({
  read: ({ kubeletConfiguration, node, pods, allocated, pushed, cgroupVersion = 2 }: QueueInput) => ({
    snapshot: readSnapshot({
      kubeletConfiguration,
      node,
      cgroup: { version: cgroupVersion },
      pods,
      assignments: { allocated_pods_state: { entries: allocated } },
    }),
    pushed: pushed.map((name) => `default/${name}`),
  }),
  decide: ({ snapshot, pushed }, profile) => decide(snapshot, { pods: pushed }, profile),
  show: ({ resizes }) => {
    const preempted = resizes.flatMap(({ preempt }) => preempt.map(({ name }) => name));
    return {
      resizes: resizes.map(({ pod, status, message }) => ({
        pod: pod.name,
        status: status === "Unchanged" ? "" : status,
        message,
      })),
      ...(preempted.length > 0 && { preempted }),
    };
  },
});

interface ActuationInput {
  readonly kubeletConfiguration: Json;
  readonly pod: PodJson & { readonly spec: { readonly initContainers?: Json[]; readonly containers: Json[] } };
  readonly before: Json;
  readonly running: readonly string[];
  readonly unmade?: readonly string[];
  readonly usage: Readonly<Record<string, number>>;
  readonly unified?: boolean;
  readonly exclusive?: readonly string[];
  readonly hugePages?: boolean;
}
interface Step {
  readonly stop?: string;
  readonly start?: string;
  readonly of?: string;
  readonly values?: Readonly<Record<string, unknown>>;
  readonly hugePages?: Readonly<Record<string, number>>;
  readonly volume?: string;
  readonly bytes?: number;
}
const memory = (bytes: number | undefined): Json => (bytes === undefined ? {} : { memory: { usageBytes: bytes } });
const actuation = suite({
  read: (input: ActuationInput) => {
    const { kubeletConfiguration, pod, before, running, unmade = [], usage } = input;
    const { unified = false, exclusive = [] } = input;
    const named = (list: readonly Json[] = []) => list.map(({ name }) => name as string);
    const stateOf = (name: string): Json => {
      if (unmade.includes(name)) return { waiting: { reason: "PodInitializing" } };
      return running.includes(name) ? { running: {} } : { terminated: { exitCode: 0 } };
    };
    const status = (name: string): Json => ({ name, containerID: `test://${name}`, state: stateOf(name) });
    const { initContainers, containers } = pod.spec;
    const all = [...named(initContainers), ...named(containers)];
    const statuses = {
      initContainerStatuses: named(initContainers).map(status),
      containerStatuses: named(containers).map(status),
    };
    const cpus = Object.fromEntries(exclusive.map((name, i) => [name, String(i + 1)]));
    const entries = { [pod.metadata.uid]: cpus };
    const cpu_manager_state = { policyName: "static", defaultCpuSet: `0,${exclusive.length + 1}-15`, entries };
    const pages = input.hugePages === true && { "hugepages-1Gi": "64Gi", "hugepages-2Mi": "64Gi" };
    const capacity = { ...LARGE, ...(unified && { memory: "16Gi" }), ...pages };
    return readSnapshot({
      kubeletConfiguration: {
        ...kubeletConfiguration,
        ...(unified && RESERVED),
        ...(exclusive.length > 0 && resizesExclusive(kubeletConfiguration)),
      },
      node: { metadata: { name: "n" }, status: { capacity, allocatable: capacity } },
      cgroup: { version: unified ? 2 : 1, runtimeCpuWeight: "linear" },
      machine: { swapBytes: 4 * 2 ** 30, cpus: CPUS },
      pods: [{ ...pod, status: { phase: "Running", ...statuses } }],
      assignments: {
        allocated_pods_state: { entries: { [pod.metadata.uid]: before } },
        ...(exclusive.length > 0 && { cpu_manager_state }),
      },
      stats: {
        pods: [
          {
            podRef: { name: pod.metadata.name, namespace: "default", uid: pod.metadata.uid },
            ...memory(usage[""]),
            containers: all.map((name) => ({ name, ...memory(usage[name]) })),
          },
        ],
      },
    });
  },
  decide: (snapshot, profile) => ({
    decision: decide(snapshot, undefined, profile),
    unified: snapshot.cgroup?.version === 2,
    swaps: snapshot.kubeletConfiguration?.memorySwap?.swapBehavior === "LimitedSwap",
  }),
  show: ({
    decision: {
      resizes: [one],
    },
    unified,
    swaps,
  }) => {
    const { restarts = [], writes = [], error = null } = one?.actuation ?? {};
    const stops = restarts.map(({ container }) => ({ stop: container }));
    const starts = restarts.map(({ container }) => ({ start: container }));
    // the recording program records no CPU weight, and records the swap limit only where swap may be used
    const written = writes.map(({ container, values, volume }) => {
      if (volume !== undefined) return { volume: volume.name, bytes: volume.sizeBytes };
      const { cpuWeight: _weight, memorySwap, memoryOomGroup, hugePageLimit, ...reported } = values;
      const isReported = unified && swaps && memorySwap !== undefined;
      const more = { ...(isReported && { memorySwap }), ...(memoryOomGroup && { memoryOomGroup: 1 }) };
      const sizes = Object.entries(hugePageLimit ?? {}).map(([size, limit]) => [pageSizeUnit(Number(size)), limit]);
      const pages = sizes.length > 0 && { hugePages: Object.fromEntries(sizes) };
      return { of: container ?? "", values: { ...reported, ...more }, ...pages };
    });
    return inOrder({ steps: [...stops, ...written, ...starts], error: error ?? "" });
  },
  expected: (out: { steps: Step[]; error: string }) => inOrder(out),
});
const CPUS = Array.from({ length: 16 }, (_, cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 }));
/** Reservations that leave 14 GiB. */
const RESERVED = { kubeReserved: { cpu: "1", memory: "2Gi" }, evictionHard: {} };
/** The recording program knows which containers have exclusive CPUs, and has no policy that refuses their resize. */
const resizesExclusive = ({ featureGates }: Json): Json => ({
  cpuManagerPolicy: "static",
  featureGates: { ...(featureGates as Json), InPlacePodVerticalScalingExclusiveCPUs: true },
});
const LARGE = { cpu: "1000", memory: "1000Gi", pods: "110" };
/**
 * The containers that stop before the writes and start after them, sorted by name: a Go map decides which one stops
 * first.
 */
function inOrder({ steps, error }: { readonly steps: readonly Step[]; readonly error: string }): unknown {
  const names = (of: "stop" | "start") => steps.flatMap((step) => step[of] ?? []).sort();
  const writes = steps.filter(({ of, volume }) => of !== undefined || volume !== undefined);
  return { stops: names("stop"), writes, starts: names("start"), error };
}

const isReported = ({ status }: PodJson): boolean =>
  status?.containerStatuses?.every(({ state, resources }) => state?.running === undefined || resources !== undefined) ??
  true;

interface ValidationInput {
  readonly kubeletConfiguration: Json;
  readonly pod: PodJson;
  readonly patch: Json;
  readonly node?: Json;
}
/**
 * The first error of an API server about a patch of the subresource `resize`; null: the patch is accepted. A running
 * container without reported resources represents a kubelet whose gate InPlacePodVerticalScaling is off.
 */
const validation = suite({
  read: ({ kubeletConfiguration, pod, patch, node }: ValidationInput) => ({
    snapshot: readSnapshot({
      kubeletConfiguration: isReported(pod)
        ? kubeletConfiguration
        : {
            ...kubeletConfiguration,
            featureGates: { ...(kubeletConfiguration["featureGates"] as Json), InPlacePodVerticalScaling: false },
          },
      node: node ?? { metadata: { name: "n" }, status: { capacity: LARGE, allocatable: LARGE } },
      pods: [pod],
    }),
    ask: { pod: `default/${pod.metadata.name}`, spec: patch },
  }),
  decide: ({ snapshot, ask }, profile) => decide(snapshot, ask, profile),
  show: ({ resizes: [one] }) => (one?.status === "Rejected" ? one.message : null),
  expected: ([first]: readonly { readonly detail: string }[]) => first?.detail ?? null,
});

export const RESIZE_SUITES: Readonly<Record<string, Suite>> = {
  resize: queue,
  "resize-crowd": queue,
  "resize-volumes": queue,
  "resize-actuation": actuation,
  "resize-unified": actuation,
  "resize-hugepages": actuation,
  "resize-mounts": actuation,
  "resize-inits": actuation,
  "resize-validation": validation,
  "resize-claimed": validation,
  "resize-refusals": validation,
};
