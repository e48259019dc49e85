import * as z from "zod";
import { HEALTHS } from "../../api/decide/dra/health.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { POD_STATES, type PodState, podStateOf } from "../lifecycle/record.ts";
import { DRIFT_CAUSES, HARMLESS_CAUSES } from "../plan/drift.ts";
import type { NodeStatus } from "./node-status.ts";
import { probeRow } from "./probe-row.ts";

const text = z.string();
const number = z.number();
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
const containerEnd = z.looseObject({ exitCode: number, reason: text, message: text, finishedAt: time.nullable() });
const container = z.looseObject({
  name: text,
  kind: z.enum(["init", "sidecar", "container"]),
  id: text.nullable(),
  state: z.enum(["waiting", "running", "terminated", "unknown"]),
  reason: text,
  message: text,
  exitCode: number.nullable(),
  lastState: containerEnd.nullish(),
  restarts: number,
  ready: z.boolean(),
  started: z.boolean().optional(),
  image: text,
  cpuset: text.nullable(),
  allocatedResourcesStatus: z
    .array(
      z.looseObject({
        name: text,
        resources: z.array(z.looseObject({ resourceID: text, health: z.enum(HEALTHS), message: text.exactOptional() })),
      }),
    )
    .optional(),
});
const cgroup = z.looseObject({
  path: text,
  files: z.array(
    z.looseObject({
      file: text,
      wanted: text,
      actual: text.nullable(),
      harmless: z.enum(HARMLESS_CAUSES).optional(),
      fault: text.optional(),
    }),
  ),
});
const usage = z.looseObject({
  cpuMilli: number.nullable(),
  memoryWorkingSetBytes: number.nullable(),
  pids: number.nullable(),
  throttledPermille: number.nullable(),
  pressure: z.looseObject({ cpu: number, memory: number, io: number }).nullable(),
});
const end = z.looseObject({
  cause: z.enum(["deleted", "preempted", "evicted", "deadline", "drained"]),
  reason: text,
  message: text,
  sinceMs: number,
  graceSeconds: number.nullable(),
  decisionId: text.nullable(),
});
/** By its name, or by the word that a status of an earlier daemon has for it. */
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
  reason: text,
  message: text,
  qos: z.enum(["Guaranteed", "Burstable", "BestEffort"]),
  priority: number.nullable(),
  isStatic: z.boolean(),
  ip: text,
  seenAt: time.nullable(),
  startedAt: time.nullable(),
  containers: z.array(container),
  cgroups: z.array(cgroup),
  resources: z.looseObject({
    cpuRequestMilli: number.nullable(),
    cpuLimitMilli: number.nullable(),
    memoryRequestBytes: number.nullable(),
    memoryLimitBytes: number.nullable(),
  }),
  usage: usage.nullable(),
  refusal: z.looseObject({ reason: text, message: text, sinceMs: number, tries: number }).nullable(),
  end: end.nullable(),
  resize: z
    .looseObject({ reason: z.enum(["Deferred", "Infeasible", "InProgress"]), message: text, sinceMs: number })
    .nullable(),
  stoppedByOthers: number.optional(),
});
const count = number.int().nonnegative();
export const deviceRow = z.looseObject({
  resource: text,
  plugin: z.enum(["registered", "stopped", "unregistered", "removed"]),
  endpoint: text.nullable(),
  capacity: count,
  allocatable: count,
  allocated: count,
  flips: count,
  numa: z.array(z.looseObject({ node: number, devices: count, allocated: count })),
  holders: z.array(
    z.looseObject({
      pod: text,
      uid: text,
      container: text,
      ids: z.array(text),
      numa: z.array(number),
      isPending: z.boolean(),
    }),
  ),
  pending: count,
});
const driftRow = z.looseObject({ path: text, file: text, actual: text, wanted: text, cause: z.enum(DRIFT_CAUSES) });
/** What a daemon tells of its node. */
export const nodeStatus: z.ZodType<NodeStatus> = z.looseObject({
  at: time,
  nodeName: text,
  pid: number,
  mode: z.enum(["observe", "enforce"]),
  runsPods: z.literal(false).optional(),
  runtimeEndpoint: text.optional(),
  runtime: z.looseObject({ name: text, version: text, notReady: z.array(text).optional() }).nullable(),
  pass: z
    .looseObject({
      sequence: number,
      at: time,
      cpuMs: number,
      tookMs: number,
      wrote: number,
      drift: number,
      drifted: z.array(driftRow).optional(),
      decidedBy: z.enum(["api", "here"]).nullable(),
      compared: z.literal(false).optional(),
      cgroupsAt: time.optional(),
    })
    .nullable(),
  pods: z.array(podRow),
  otherKubelet: z
    .looseObject({
      since: time,
      signs: z.array(z.enum(["process", "sandboxes", "stops", "listener"])),
      message: text,
    })
    .optional(),
  devices: z.array(deviceRow).optional(),
  probes: z.array(probeRow).optional(),
  unwritable: z.array(text).optional(),
  problems: z.array(text),
  refusedManifests: z.array(
    z.looseObject({
      pod: text,
      file: text.optional(),
      faults: z.array(z.looseObject({ path: text, message: text, line: number.optional(), column: number.optional() })),
    }),
  ),
  events: z.array(seenEvent),
});

/** A NodeStatus that came over the network or from a file. Errors: the first field that is not as it should be. */
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
