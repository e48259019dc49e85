import * as z from "zod";
import { isObject } from "../base/own.ts";
import { wholeNumber } from "./fields.ts";
import { answerText, type Form, integer, ofUnit, podRef, REASONS_OF_PODS } from "./forms.ts";
import { type KindSpec, nothingAsked, PLAIN, type PlaceDifference } from "./kind-spec.ts";
import type { Bytes, CpuShares, CpuWeight, Micros } from "./units.ts";

const CGROUP_LEVELS = ["node", "qos", "pod", "container"] as const;
export type CgroupLevel = (typeof CGROUP_LEVELS)[number];

/** How a step of a plan ended. */
export const STEP_STATUSES = ["planned", "applied", "unchanged", "skipped", "failed", "rolled_back"] as const;
export type StepStatus = (typeof STEP_STATUSES)[number];

/** The name of a cgroup alone: `pod1` of `/kubepods/pod1`. */
export const lastSegment = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

const cpuList = () =>
  z.string().regex(/^(?:\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*)?$/, "must be a list such as 0-3,6");

/** The values that a cgroup should hold, in the units of the kubelet's ResourceConfig. */
export const cgroupValues = z.lazy(() => {
  const orNone = integer.min(-1);
  const limit = ofUnit<Bytes>(orNone.describe("bytes; -1: no limit"));
  return z
    .strictObject({
      cpuShares: ofUnit<CpuShares>(wholeNumber(2, 262_144)).exactOptional(),
      cpuWeight: ofUnit<CpuWeight>(
        wholeNumber(1, 10_000).describe("cpu.weight, to which cpuShares is converted; cgroup v2 only"),
      ).exactOptional(),
      cpuQuota: ofUnit<Micros>(orNone.describe("microseconds; -1: no quota")).exactOptional(),
      cpuPeriod: ofUnit<Micros>(wholeNumber(1000, 1_000_000).describe("microseconds")).exactOptional(),
      memory: ofUnit<Bytes>(
        integer.describe("bytes; -1: no limit; less than -1: qosReserved reserves more than the node has"),
      ).exactOptional(),
      memoryMin: limit.exactOptional(),
      memoryLow: limit.exactOptional(),
      memoryHigh: limit.exactOptional(),
      memorySwap: limit
        .describe("bytes; cgroup v1: memory plus swap (memsw); cgroup v2: swap alone; -1: no limit")
        .exactOptional(),
      pidsLimit: orNone.exactOptional(),
      hugePageLimit: z
        .record(z.string(), limit)
        .describe("limits in bytes by page size in bytes; -1: no limit, for which `files` has the kubelet's value 2^62")
        .exactOptional(),
      cpusetCpus: cpuList().exactOptional(),
      cpusetMems: cpuList().exactOptional(),
      oomScoreAdj: integer
        .describe("oom_score_adj of the container's processes (/proc/PID/oom_score_adj), which is not a cgroup file")
        .exactOptional(),
      memoryOomGroup: z.boolean().exactOptional(),
    })
    .describe("the values of the cgroup in the form of the kubelet's ResourceConfig; an absent value is not set");
});
export type CgroupValues = Form<typeof cgroupValues>;

/** The exact text for each file of a cgroup. */
export const cgroupFiles = () =>
  z
    .array(
      z.strictObject({
        path: z
          .string()
          .regex(/^[a-z]+(?:\.[A-Za-z0-9_]+)+$/, "must be the name of a cgroup file")
          .describe("the name of the file, such as cpu.shares"),
        value: z
          .string()
          .max(4096)
          .regex(/^[^\0\n]*$/, "must be one line"),
      }),
    )
    .describe("the files of the cgroup with the exact text of each");

/** A cgroup's directory, and the exact text for each of its files. */
const cgroupPlan = () =>
  z.strictObject({
    // systemd repeats a long cgroupRoot in the name of each slice below it
    path: answerText
      .regex(/^\/(?:[^/\0\n]+(?:\/[^/\0\n]+)*)?$/, "must be a path from `/`")
      .refine((path) => !path.split("/").some((part) => part === "." || part === ".."), "must not lead out of the root")
      .describe(
        "the path of the cgroup below each hierarchy: for the driver cgroupfs `/kubepods/burstable/pod<uid>`, for systemd its slices",
      ),
    level: z.enum(CGROUP_LEVELS),
    pod: podRef.nullable(),
    container: answerText.nullable().describe("the container's name; null: the cgroup is above the container level"),
    containerId: answerText
      .nullable()
      .describe("the id of the running container; null: the container does not run yet, and `path` ends in its name"),
    values: cgroupValues,
    files: cgroupFiles(),
  });
export type CgroupPlan = Form<typeof cgroupPlan>;
export type CgroupFile = CgroupPlan["files"][number];

/** Reasons for the values of the node as a whole, or of one of its cgroups. */
export const NODE_LEVEL_REASONS = [
  "capacity",
  "pods_from_configuration",
  "shares_from_cpu",
  "limit_from_memory",
  "limit_from_process_ids",
] as const;
export type NodeLevelReason = (typeof NODE_LEVEL_REASONS)[number];
const CGROUPS_REASONS = [
  ...NODE_LEVEL_REASONS,
  ...REASONS_OF_PODS,
  "all_cpus",
  "best_effort",
  "cfs_period",
  "enforce_node_allocatable",
  "exclusive_cpus",
  "hugepages_from_limits",
  "hugepages_from_requests",
  "limited_swap",
  "memory_from_limit",
  "memory_high",
  "memory_manager",
  "memory_qos_off",
  "memory_reservation",
  "memory_unset",
  "no_swap",
  "oom_group",
  "oom_score_adj",
  "page_sizes_of_node",
  "pages_left_out",
  "part_of_claims",
  "pod_pids_limit",
  "pods_enforced",
  "pods_not_enforced",
  "qos_reserved",
  "quota_from_limit",
  "quota_off",
  "quota_unset",
  "resize_pending",
  "shared_pool",
  "shares_from_burstable_requests",
  "shares_from_limit",
  "shares_from_request",
  "weight_from_shares",
] as const;

/** The decision of the kind `cgroups`. */
export const cgroupsDecision = z.lazy(() =>
  z.strictObject({
    version: z.literal([1, 2]),
    driver: z.enum(["cgroupfs", "systemd"]),
    cgroups: z.array(cgroupPlan()).describe("the cgroups, parents before children"),
  }),
);
export type CgroupsDecision = Form<typeof cgroupsDecision>;

/**
 * Values that the kernel gives a new cgroup in the files of Memory QoS. Linux 6.12:
 * Documentation/admin-guide/cgroup-v2.rst, "Memory Interface Files". Other files are not listed: systemd or the
 * runtime writes some of them, such as pids.max, where the kubelet writes nothing.
 */
const KERNEL_DEFAULTS = [
  { field: "memoryMin", value: 0, file: "memory.min", text: "0" },
  { field: "memoryLow", value: 0, file: "memory.low", text: "0" },
  { field: "memoryHigh", value: -1, file: "memory.high", text: "max" },
] as const satisfies readonly { field: keyof CgroupValues; value: number; file: string; text: string }[];

/** Whether one decision writes the kernel's default and the other writes nothing. */
function isKernelDefault({ path, recorded, replayed }: PlaceDifference): boolean {
  if (recorded !== undefined && replayed !== undefined) return false;
  const written = recorded ?? replayed;
  return KERNEL_DEFAULTS.some(({ field, value, file, text }) =>
    isObject(written)
      ? path.endsWith(`.files["${file}"]`) && written["value"] === text
      : path.endsWith(`.values.${field}`) && written === value,
  );
}

export const cgroups = {
  decides: "the node's whole cgroup tree with every value and the exact text of every file",
  ask: nothingAsked,
  decision: cgroupsDecision,
  reasons: CGROUPS_REASONS,
  podPartsOf: ({ cgroups: plans }: CgroupsDecision) => plans,
  hasNoEffect: isKernelDefault,
  facts: null,
  traits: {
    ...PLAIN,
    pods: "overhead",
    cacheable: true,
    defaultsConfiguration: true,
    whatIf: "node-with-pod",
    nodePage: "snapshot",
    up: "printed",
    collected: null,
  },
} as const satisfies KindSpec;
