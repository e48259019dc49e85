import { decideResize } from "../../api/decide/kinds/resize.ts";
import type { CgroupValues } from "../../api/model/cgroups.ts";
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
}

function readSnapshot(input: Json): Snapshot {
  const { pods, ...rest } = input as { readonly pods: readonly unknown[] };
  const decoded = decodeSnapshot(rest);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  // the functions behind the vectors do not default requests, so the pods are read below that step
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
}
const queue = suite({
  read: ({ kubeletConfiguration, node, pods, allocated, pushed }: QueueInput) => ({
    snapshot: readSnapshot({
      kubeletConfiguration,
      node,
      cgroup: { version: 2 },
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
  readonly usage: Readonly<Record<string, number>>;
}
interface Step {
  readonly stop?: string;
  readonly start?: string;
  readonly of?: string;
  readonly values?: CgroupValues;
}
const memory = (bytes: number | undefined): Json => (bytes === undefined ? {} : { memory: { usageBytes: bytes } });
const actuation = suite({
  read: ({ kubeletConfiguration, pod, before, running, usage }: ActuationInput) => {
    const named = (list: readonly Json[] = []) => list.map(({ name }) => name as string);
    const status = (name: string): Json => ({
      name,
      containerID: `test://${name}`,
      state: running.includes(name) ? { running: {} } : { terminated: { exitCode: 0 } },
    });
    const { initContainers, containers } = pod.spec;
    const all = [...named(initContainers), ...named(containers)];
    const statuses = {
      initContainerStatuses: named(initContainers).map(status),
      containerStatuses: named(containers).map(status),
    };
    return readSnapshot({
      kubeletConfiguration,
      node: { metadata: { name: "n" }, status: { capacity: LARGE, allocatable: LARGE } },
      cgroup: { version: 1 },
      pods: [{ ...pod, status: { phase: "Running", ...statuses } }],
      assignments: { allocated_pods_state: { entries: { [pod.metadata.uid]: before } } },
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
  decide: (snapshot, profile) => decide(snapshot, undefined, profile),
  show: ({ resizes: [one] }) => {
    const { restarts = [], writes = [], error = null } = one?.actuation ?? {};
    const stops = restarts.map(({ container }) => ({ stop: container }));
    const starts = restarts.map(({ container }) => ({ start: container }));
    const written = writes.map(({ container, values }) => ({ of: container ?? "", values }));
    return inOrder({ steps: [...stops, ...written, ...starts], error: error ?? "" });
  },
  expected: (out: { steps: Step[]; error: string }) => inOrder(out),
});
const LARGE = { cpu: "1000", memory: "1000Gi", pods: "110" };
/** What stops before and what starts after the writes, by name: a map of Go's chooses which stops first. */
function inOrder({ steps, error }: { readonly steps: readonly Step[]; readonly error: string }): unknown {
  const names = (of: "stop" | "start") => steps.flatMap((step) => step[of] ?? []).sort();
  const writes = steps.flatMap(({ of, values }) => (of === undefined ? [] : [{ of, values }]));
  return { stops: names("stop"), writes, starts: names("start"), error };
}

interface ValidationInput {
  readonly kubeletConfiguration: Json;
  readonly pod: PodJson;
  readonly patch: Json;
}
/** What an API server says first of a patch of the subresource `resize`; null: it takes it. */
const validation = suite({
  read: ({ kubeletConfiguration, pod, patch }: ValidationInput) => ({
    snapshot: readSnapshot({
      kubeletConfiguration,
      node: { metadata: { name: "n" }, status: { capacity: LARGE, allocatable: LARGE } },
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
  "resize-actuation": actuation,
  "resize-validation": validation,
};
