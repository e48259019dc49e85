import * as z from "zod";
import { CGROUP_LEVELS } from "../model/decision.ts";
import { podRef } from "./manager-answers.ts";

/** The decisions about a node as a whole, as the API answers them. */
const integer = z.number();
const quantities = z.record(z.string(), z.string()).describe("resource name to canonical quantity");

export const cgroupValues = z
  .strictObject({
    cpuShares: integer,
    cpuWeight: integer.describe("cgroup v2 only"),
    cpuQuota: integer.describe("microseconds; -1: no quota"),
    cpuPeriod: integer.describe("microseconds"),
    memory: integer.describe("bytes; -1: no limit"),
    memoryMin: integer,
    memoryLow: integer,
    memoryHigh: integer,
    memorySwap: integer.describe("v1: memory plus swap; v2: swap alone"),
    pidsLimit: integer,
    hugePageLimit: z
      .record(z.string(), integer)
      .describe("page size in bytes to limit in bytes; -1: no limit, for which `files` has the kubelet's 2^62"),
    cpusetCpus: z.string(),
    cpusetMems: z.string(),
    oomScoreAdj: integer.describe("of the container's processes"),
    memoryOomGroup: z.boolean(),
  })
  .partial()
  .describe("what the cgroup should hold, as the kubelet's ResourceConfig; an absent field is not set");

const cgroupPlan = z.strictObject({
  path: z.string().describe("as under each hierarchy, for the driver"),
  level: z.enum(CGROUP_LEVELS),
  pod: podRef.nullable(),
  container: z.string().nullable(),
  containerId: z.string().nullable().describe("null when the container does not run yet"),
  values: cgroupValues,
  files: z.array(z.strictObject({ path: z.string(), value: z.string() })).describe("the exact text for each file"),
});
export const cgroupsDecision = z.strictObject({
  version: z.union([z.literal(1), z.literal(2)]),
  driver: z.enum(["cgroupfs", "systemd"]),
  cgroups: z.array(cgroupPlan).describe("parents before children"),
});
export const allocatableDecision = z.strictObject({
  capacity: quantities,
  allocatable: quantities,
  reserved: z.record(z.string(), quantities).describe("what was taken off, by whom"),
  kubepods: z.strictObject({ enforced: z.boolean(), limits: quantities, values: cgroupValues }),
  enforcement: z.array(z.strictObject({ key: z.string(), cgroup: z.string(), values: cgroupValues })),
  errors: z.array(z.string()).describe("configuration that the kubelet would refuse to start with"),
});
