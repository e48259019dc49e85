import type { Numbers, Reason } from "../model/decision.ts";
import { own } from "../model/own.ts";
import { humanBytes } from "./size.ts";

type Words = (n: Numbers) => string;
const size = (n: Numbers, name: string): string =>
  typeof n[name] === "number" ? humanBytes(n[name]) : String(n[name]);
const because: Words = (n) => String(n["because"]);
const whose = (n: Numbers): string => (n["fromPod"] === true ? "the pod's" : "a");

/** The sentence of each code; a code without one shows as it is, with its numbers. */
const SENTENCES: Readonly<Record<string, Words>> = {
  all_cpus: (n) => `every CPU is named: ${because(n)}`,
  best_effort: () => "BestEffort: the least share there is",
  capacity: (n) => `${n["quantity"]} is what the machine has`,
  capacity_less_reserves: (n) =>
    `capacity ${n["capacity"]} less kubeReserved ${n["kubeReserved"]}, systemReserved ${n["systemReserved"]} and evictionHard ${n["evictionHard"]}`,
  cfs_period: (n) => `quotas are counted in periods of ${n["periodMicros"]} µs`,
  device_plugin_removed: () => "its plugin is gone: the resource stays with 0",
  devices_as_observed: (n) => `no devices were given, so the node's own ${n["quantity"]} stands`,
  enforce_node_allocatable: (n) => `enforceNodeAllocatable names ${n["key"]}`,
  exclusive_cpus: (n) => `CPUs ${n["cpus"]} belong to this container alone`,
  hugepages_from_limits: () => "as limited; page sizes without a limit get 0",
  hugepages_from_requests: () => "as requested",
  limit_from_memory: (n) => `${size(n, "bytes")} is the memory left to it`,
  limit_from_process_ids: (n) => `${n["pidsLimit"]} process ids are left to it`,
  limited_swap: (n) =>
    `LimitedSwap: the request's part (${size(n, "request")} of ${size(n, "nodeMemory")}) of ${size(n, "swapCapacity")} swap`,
  memory_from_limit: (n) => `${whose(n)} memory limit of ${size(n, "bytes")}`,
  memory_high: (n) =>
    `throttled at ${n["factor"]} of the way from request ${size(n, "request")} to ${size(n, "ceiling")}`,
  memory_manager: (n) => `the memory manager assigned NUMA node ${n["numaNodes"]}`,
  memory_reservation: (n) => `memoryReservationPolicy ${n["policy"]}: request ${size(n, "request")}`,
  memory_unset: (n) => `unlimited: ${because(n)}`,
  no_swap: (n) => `no swap: ${because(n)}`,
  oom_group: (n) => `an OOM kill takes the whole container: ${because(n)}`,
  oom_score_adj: (n) => `${n["qosClass"]} on a node with ${size(n, "memoryCapacity")}`,
  page_sizes_of_node: (n) => `every page size of the node; those not named get ${n["unnamed"]}`,
  pod_pids_limit: (n) => `podPidsLimit is ${n["podPidsLimit"]}`,
  pods_enforced: () => "enforceNodeAllocatable names pods: capacity less the reserves",
  pods_from_configuration: (n) => `maxPods ${n["maxPods"]}, podsPerCore ${n["podsPerCore"]}`,
  pods_not_enforced: () => "enforceNodeAllocatable does not name pods: the whole capacity",
  qos_reserved: (n) =>
    `qosReserved keeps ${n["percent"]} % of the better tiers' requests out of ${size(n, "allocatable")}`,
  quota_from_limit: (n) => `${whose(n)} cpu limit of ${n["milliCpu"]}m in every ${n["periodMicros"]} µs`,
  quota_off: (n) => `no quota: ${because(n)}`,
  quota_unset: (n) => `unlimited: ${because(n)}`,
  resize_pending: (n) => `container ${n["container"]} has the resources that are allocated, not those of the spec`,
  shared_pool: (n) => `CPUs ${n["cpus"]} are the shared pool`,
  shares_from_burstable_requests: (n) => `the tier's pods request ${n["milliCpu"]}m cpu`,
  shares_from_cpu: (n) => `${n["milliCpu"]}m cpu are left to it`,
  shares_from_limit: (n) => `no cpu request: its limit of ${n["milliCpu"]}m counts`,
  shares_from_request: (n) => `${n["milliCpu"]}m cpu requested`,
  weight_from_shares: (n) => `cgroup v2's form of ${n["cpuShares"]} shares (the ${n["rule"]} rule)`,
  unhealthy_devices: () => "unhealthy devices do not count",
};

/** One line for a person: `cpuShares: 500m cpu requested`; with `full` also the code and every number used. */
export function reasonText(reason: Reason, full: boolean): string {
  const sentence = own(SENTENCES, reason.code)?.(reason.numbers ?? {});
  const exact = [reason.code, numbersText(reason.numbers ?? {})].join(" ").trimEnd();
  if (sentence === undefined) return `${reason.field}: ${exact}`;
  return full ? `${reason.field}: ${sentence} [${exact}]` : `${reason.field}: ${sentence}`;
}

const numbersText = (numbers: Numbers): string =>
  Object.entries(numbers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
