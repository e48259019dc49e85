import * as z from "zod";
import { CGROUP_LEVELS, type Kind } from "../api/model/decision.ts";
import { EVICTION_SIGNALS, NODE_RECLAIM, PRESSURE_CONDITIONS } from "../api/model/eviction.ts";
import { wholeNumber } from "../api/model/fields.ts";

/** The parts of answers that this node carries out, as no core answers them otherwise: no more is asked of an API's. */

const MOST = Number.MAX_SAFE_INTEGER;
const text = z.string().max(65_536);
const podRef = z.looseObject({ namespace: text, name: text, uid: text });
const quantities = z.record(z.string(), text);
/** -1: none. */
const limit = wholeNumber(-1, MOST);
const cpuset = z
  .string()
  .regex(/^(?:\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*)?$/, "must be a list such as 0-3,6");
const cgroupPath = z
  .string()
  .max(4096)
  .regex(/^\/(?:[^/\0\n]+(?:\/[^/\0\n]+)*)?$/, "must be a path from `/`")
  .refine((path) => !path.split("/").some((part) => part === "." || part === ".."), "must not lead out of the root");

const values = z.looseObject({
  cpuShares: wholeNumber(2, 262_144).optional(),
  cpuWeight: wholeNumber(1, 10_000).optional(),
  cpuQuota: limit.optional(),
  cpuPeriod: wholeNumber(1000, 1_000_000).optional(),
  memory: limit.optional(),
  memoryMin: limit.optional(),
  memoryLow: limit.optional(),
  memoryHigh: limit.optional(),
  memorySwap: limit.optional(),
  pidsLimit: limit.optional(),
  hugePageLimit: z.record(z.string(), limit).optional(),
  cpusetCpus: cpuset.optional(),
  cpusetMems: cpuset.optional(),
  oomScoreAdj: wholeNumber(-1000, 1000).optional(),
  memoryOomGroup: z.boolean().optional(),
});
const file = z.looseObject({
  path: z.string().regex(/^[a-z]+(?:\.[A-Za-z0-9_]+)+$/, "must be the name of a cgroup file"),
  value: z
    .string()
    .max(4096)
    .regex(/^[^\0\n]*$/, "must be one line"),
});
const cgroups = z.looseObject({
  version: z.literal([1, 2]),
  driver: z.enum(["cgroupfs", "systemd"]),
  cgroups: z.array(
    z.looseObject({
      path: cgroupPath,
      level: z.enum(CGROUP_LEVELS),
      pod: podRef.nullable(),
      container: text.nullable(),
      containerId: text.nullable(),
      values,
      files: z.array(file),
    }),
  ),
});
const admission = z.looseObject({
  admit: z.boolean(),
  preempt: z.array(podRef),
  reason: text,
  message: text,
  startErrors: z.array(text),
});
const eviction = z.looseObject({
  conditions: z.array(z.looseObject({ type: z.enum(PRESSURE_CONDITIONS) })),
  evicted: z.array(
    z.looseObject({
      pod: podRef,
      cause: z.enum(["threshold", "emptyDir", "pod-ephemeral-storage", "container-ephemeral-storage"]),
      reason: text,
      message: text,
      gracePeriodSeconds: wholeNumber(0, 2 ** 31),
    }),
  ),
  reclaim: z
    .looseObject({
      threshold: z.looseObject({ signal: z.enum(EVICTION_SIGNALS) }),
      event: z.looseObject({ reason: text, message: text }),
      nodeLevel: z.array(z.enum(NODE_RECLAIM)),
    })
    .nullable(),
});
const id = z.string().min(1).max(4096);
const images = z.looseObject({
  policy: z.looseObject({ timer: z.boolean() }),
  remove: z.array(
    z.looseObject({ id, runtimeHandler: text, names: z.array(text), sizeBytes: wholeNumber(0, MOST), why: text }),
  ),
});
const containers = z.looseObject({
  remove: z.array(
    z.looseObject({
      id,
      target: z.enum(["container", "sandbox", "pod-logs", "log-link"]),
      name: text.nullable(),
      pod: podRef.nullable(),
      stopFirst: z.boolean(),
      why: text,
    }),
  ),
});

const anything = z.looseObject({});
/** Of `decision`. */
export const DECISION_SHAPES: Readonly<Record<Kind, z.ZodType>> = {
  allocatable: z.looseObject({ capacity: quantities, allocatable: quantities }),
  cgroups,
  admission,
  eviction,
  "image-gc": images,
  "container-gc": containers,
  cpus: anything,
  memory: anything,
  topology: anything,
  devices: anything,
  preemption: anything,
  probes: anything,
  "probe-guard": anything,
};

/** State files that the next decision is to be told: the kubelet's own, JSON each. */
export const STATE_FILES = z.looseObject({
  assignments: z
    .record(z.string(), z.string().refine(isJson, "must be the text of a state file, which is JSON"))
    .optional(),
});
function isJson(value: string): boolean {
  try {
    const parsed = JSON.parse(value) as unknown;
    return typeof parsed === "object" && parsed !== null;
  } catch {
    return false;
  }
}
