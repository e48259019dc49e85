import * as z from "zod";
import { err, ok, type Result } from "../../api/base/result.ts";
import { HEALTHS } from "../../api/decide/dra/health.ts";
import { POD_STATES, type PodState, podStateOf } from "../lifecycle/record.ts";
import { DRIFT_CAUSES, HARMLESS_CAUSES } from "../plan/drift.ts";
import { probeRow, type StatusForm } from "./probe-row.ts";

const text = z.string();
const number = z.number();
const count = number.int().nonnegative();
const time = z.string().refine((value) => !Number.isNaN(Date.parse(value)), "must be a time");
const pod = z.looseObject({ namespace: text, name: text, uid: text });

const seenEvent = z.looseObject({
  at: time,
  firstAt: time,
  count: number,
  type: z.enum(["Normal", "Warning"]),
  reason: text,
  message: text,
  pod,
  container: text.nullable(),
});
/** Equal events are one: `at` is when it was seen last. */
export type SeenEvent = StatusForm<typeof seenEvent>;

const containerEnd = z.looseObject({
  exitCode: number,
  /** `Error`, `OOMKilled`, `Completed`; empty: the runtime gave none. */
  reason: text,
  /** The container's termination message, or why its end is not known. */
  message: text,
  finishedAt: time.nullable(),
});
/** The end of a container, from v1.ContainerStateTerminated. */
export type ContainerEnd = StatusForm<typeof containerEnd>;

const containerRow = z.looseObject({
  name: text,
  kind: z.enum(["init", "sidecar", "container"]),
  id: text.nullable(),
  /** `unknown`: not observed; only its name, kind, image and CPUs are known. */
  state: z.enum(["waiting", "running", "terminated", "unknown"]),
  reason: text,
  message: text,
  exitCode: number.nullable(),
  /** The end of the previous instance; null: none. Absent: an older daemon. */
  lastState: containerEnd.nullish(),
  restarts: number,
  ready: z.boolean(),
  /** True: the container's startup probe has succeeded, or it has none. Absent: an older daemon. */
  started: z.boolean().optional(),
  image: text,
  cpuset: text.nullable(),
  /** The health of its devices, from claims and plugins. Absent: not known. */
  allocatedResourcesStatus: z
    .array(
      z.looseObject({
        name: text,
        resources: z.array(z.looseObject({ resourceID: text, health: z.enum(HEALTHS), message: text.exactOptional() })),
      }),
    )
    .optional(),
});
export type ContainerRow = StatusForm<typeof containerRow>;

const cgroupRow = z.looseObject({
  path: text,
  files: z.array(
    z.looseObject({
      file: text,
      wanted: text,
      /** The actual text; null: the file does not exist, or cannot be read. */
      actual: text.nullable(),
      /** Why a different `actual` value is not corrected. Absent: it is the wanted value, or will be corrected. */
      harmless: z.enum(HARMLESS_CAUSES).optional(),
      /** Why it could not be written. Absent: it was written, or did not have to be. */
      fault: text.optional(),
    }),
  ),
});
export type CgroupRow = StatusForm<typeof cgroupRow>;
export type FileRow = CgroupRow["files"][number];

const podResources = z.looseObject({
  cpuRequestMilli: number.nullable(),
  cpuLimitMilli: number.nullable(),
  memoryRequestBytes: number.nullable(),
  memoryLimitBytes: number.nullable(),
});
/** Resources of the pod as a whole, as its cgroup has them; null: none. */
export type PodResources = StatusForm<typeof podResources>;

/** PodUsage */
const usage = z.looseObject({
  cpuMilli: number.nullable(),
  memoryWorkingSetBytes: number.nullable(),
  pids: number.nullable(),
  throttledPermille: number.nullable(),
  pressure: z.looseObject({ cpu: number, memory: number, io: number }).nullable(),
});
/** PodEnd */
const end = z.looseObject({
  cause: z.enum(["deleted", "preempted", "evicted", "deadline", "drained"]),
  reason: text,
  message: text,
  sinceMs: number,
  graceSeconds: number.nullable(),
  decisionId: text.nullable(),
});
/** The state by its name, or by the word in an earlier daemon's status. */
const podState = text.transform((word, ctx): PodState => {
  const state = podStateOf(word);
  if (state !== undefined) return state;
  ctx.addIssue({ code: "custom", message: `must be ${POD_STATES.join(", ")}` });
  return z.NEVER;
});
export const podRow = z.looseObject({
  ...pod.shape,
  state: podState,
  phase: z.enum(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
  /** The first reason why it is not well: of the status, a waiting container, or a refusal; or empty. */
  reason: text,
  message: text,
  qos: z.enum(["Guaranteed", "Burstable", "BestEffort"]),
  priority: number.nullable(),
  isStatic: z.boolean(),
  ip: text,
  /** When the pod was first seen; null: not known. */
  seenAt: time.nullable(),
  startedAt: time.nullable(),
  containers: z.array(containerRow),
  /** Files of the pod's cgroup and those of its running containers; those with the wanted value have `actual` equal to it. */
  cgroups: z.array(cgroupRow),
  resources: podResources,
  usage: usage.nullable(),
  /** See PodRecord. */
  refusal: z.looseObject({ reason: text, message: text, sinceMs: number, tries: number }).nullable(),
  end: end.nullable(),
  resize: z
    .looseObject({ reason: z.enum(["Deferred", "Infeasible", "InProgress"]), message: text, sinceMs: number })
    .nullable(),
  /** How often another process stopped a container of the pod. Absent: never. */
  stoppedByOthers: number.optional(),
});
export type PodRow = StatusForm<typeof podRow>;

const deviceHolder = z.looseObject({
  /** NAMESPACE/NAME, or the uid of an unknown pod. */
  pod: text,
  uid: text,
  container: text,
  /** The device ids in natural order. */
  ids: z.array(text),
  /** The NUMA nodes of the devices; empty: not reported. */
  numa: z.array(number),
  /** True: the plugin has not answered for them yet. */
  isPending: z.boolean(),
});
export type DeviceHolder = StatusForm<typeof deviceHolder>;

export const deviceRow = z.looseObject({
  resource: text,
  /** `stopped`: its stream ended; `unregistered`: not registered again since the start; `removed`: stopped longer than the grace period. */
  plugin: z.enum(["registered", "stopped", "unregistered", "removed"]),
  /** The path of the plugin's socket; null: it has not registered since the start. */
  endpoint: text.nullable(),
  capacity: count,
  /** The number of healthy devices. */
  allocatable: count,
  /** The number of devices that containers hold, including those that the plugin no longer lists. */
  allocated: count,
  /** Changes of health since the start. */
  flips: count,
  /** The listed devices by NUMA node; -1: the plugin reports no node. A device on several nodes counts at each. */
  numa: z.array(z.looseObject({ node: number, devices: count, allocated: count })),
  holders: z.array(deviceHolder),
  /** Containers that have ids, and no answer of the plugin to them yet. */
  pending: count,
});
/** A resource of a device plugin, in whole devices. */
export type DeviceRow = StatusForm<typeof deviceRow>;

const driftRow = z.looseObject({
  /** The cgroup's path, below the daemon's root. */
  path: text,
  file: text,
  /** The value as the pass found it. */
  actual: text,
  wanted: text,
  cause: z.enum(DRIFT_CAUSES),
});
/** A file of a cgroup with another value than wanted. */
export type DriftRow = StatusForm<typeof driftRow>;

const otherKubelet = z.looseObject({
  since: time,
  /**
   * `process`: of a kubelet that uses or may use this runtime; `sandboxes`: of a kubelet, in this runtime; `stops`: another process
   * stopped this daemon's pods; `listener`: a kubelet's port or socket is in use.
   */
  signs: z.array(z.enum(["process", "sandboxes", "stops", "listener"])),
  message: text,
});
/** The signs of another kubelet, and since when. */
export type OtherKubeletView = StatusForm<typeof otherKubelet>;

/** A daemon's report about its node. */
export const nodeStatus = z.looseObject({
  at: time,
  nodeName: text,
  pid: number,
  /** `observe`: nothing is started, stopped or written. */
  mode: z.enum(["observe", "enforce"]),
  /** False: the daemon only compares the cgroups of pods that a kubelet runs. Absent: it runs pods. */
  runsPods: z.literal(false).optional(),
  /** The setting of that name, the socket of its pods' runtime. Absent: an older daemon. */
  runtimeEndpoint: text.optional(),
  runtime: z
    .looseObject({
      name: text,
      version: text,
      /** The conditions that prevent it from running pods, or pods with their own network. Absent: none. */
      notReady: z.array(text).optional(),
    })
    .nullable(),
  /** The figures of the last pass. */
  pass: z
    .looseObject({
      sequence: number,
      at: time,
      cpuMs: number,
      tookMs: number,
      wrote: number,
      /** Files with another value than wanted, for which no rounding or formula accounts. */
      drift: number,
      /** The first drifted files of the pass, at most 100. Absent: there are none, or an older daemon. */
      drifted: z.array(driftRow).optional(),
      decidedBy: z.enum(["api", "here"]).nullable(),
      /** False: nothing was decided, or no file was read, so `drift` means nothing. Absent: they were compared. */
      compared: z.literal(false).optional(),
      /** The time of the pass over the cgroups on which these fields are based. Absent: there was none, or an older daemon. */
      cgroupsAt: time.optional(),
    })
    .nullable(),
  pods: z.array(podRow),
  /** Another kubelet uses this runtime, so no pod is admitted. Absent: none is known. */
  otherKubelet: otherKubelet.optional(),
  /** Devices by resource. Absent: this daemon serves no device plugins. */
  devices: z.array(deviceRow).optional(),
  /** The probes by pod, container and type. Absent: this daemon probes nothing. */
  probes: z.array(probeRow).optional(),
  /** The daemon's own files that cannot be written now, one line each. Absent: an older daemon. */
  unwritable: z.array(text).optional(),
  /** Current faults and notices, one line each. */
  problems: z.array(text),
  /** Manifests that are not run, with the fields at fault. */
  refusedManifests: z.array(
    z.looseObject({
      pod: text,
      /** The file; absent: its source is no file. */
      file: text.optional(),
      /** Lines and columns of that file, from 1. */
      faults: z.array(z.looseObject({ path: text, message: text, line: number.optional(), column: number.optional() })),
    }),
  ),
  /** The newest last. */
  events: z.array(seenEvent),
});
/** The daemon's state for people: served at its address, and in a file for when it does not run. */
export type NodeStatus = StatusForm<typeof nodeStatus>;

/** Decodes a NodeStatus from the network or a file. Errors: the first wrong field. */
export function decodeStatus(json: string): Result<NodeStatus, string> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return err("not JSON");
  }
  const parsed = nodeStatus.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const [issue] = parsed.error.issues;
  return err(`no node status: ${issue?.path.join(".") || "the whole"}: ${issue?.message ?? ""}`);
}
