import type { Numbers } from "../../model/forms.ts";
import { humanBytes } from "../size.ts";
import { many, type Sentences, type Words } from "./words.ts";

const size = (n: Numbers, name: string): string =>
  typeof n[name] === "number" ? humanBytes(n[name]) : String(n[name]);
const because: Words = (n) => String(n["because"]);
const ownerWord = (n: Numbers): string => (n["fromPod"] === true ? "the pod's" : "a");

const nodes = (n: Numbers): string => {
  if (n["numaNodes"] === "any") return "any NUMA node";
  return `NUMA node${String(n["numaNodes"]).includes(",") ? "s" : ""} ${n["numaNodes"]}`;
};
/** The feature that protects requests: the gate itself, or a policy. */
const protector = (n: Numbers): string =>
  n["policy"] === "Requests" ? "MemoryQoS" : `memoryReservationPolicy ${n["policy"]}`;
const reusedCpus = (n: Numbers): string => (Number(n["reused"]) > 0 ? `, ${n["reused"]} of them the pod's before` : "");
const DEVICE_SOURCE: Readonly<Record<string, string>> = {
  reused: "an init container of the pod had them",
  preferred: "the plugin prefers them",
  aligned: "on the NUMA nodes of the affinity",
  unaligned: "on other NUMA nodes than the affinity's",
  "no-affinity": "no NUMA affinity applies to them",
};

/** The manager that refused, with the requested and the available amounts. */
const refusedText: Words = ({ reason, manager, ...numbers }) => {
  const amounts = Object.entries(numbers).map(([name, value]) => `${name} ${value}`);
  return [`nothing is given: ${reason} of ${manager}`, ...amounts].join("; ");
};

/** The sentences for the reasons of `allocatable`, `cgroups` and the resource managers, and of every kind that looks at pods. */
export const RESOURCES_SENTENCES = {
  allocatable_raised: (n) => `${n["allocated"]} are in use, and no less is reported`,
  all_cpus: (n) => `every CPU is listed: ${because(n)}`,
  best_effort: () => "BestEffort: the least share there is",
  capacity: (n) => `${n["quantity"]} is what the machine has`,
  capacity_less_reserves: (n) =>
    `capacity ${n["capacity"]} less kubeReserved ${n["kubeReserved"]}, systemReserved ${n["systemReserved"]} and evictionHard ${n["evictionHard"]}`,
  cfs_period: (n) => `quotas are counted in periods of ${n["periodMicros"]} µs`,
  checkpoint_entry_dropped: (n) => `what container ${n["container"]} held is left out: ${n["fault"]} at ${n["at"]}`,
  device_plugin_removed: () => "its plugin is gone: the resource stays with 0",
  devices_as_observed: (n) => `no devices were given, so the node's own ${n["quantity"]} is used`,
  devices_given: (n) => `${n["ids"]}: ${DEVICE_SOURCE[String(n["from"])] ?? n["from"]}`,
  enforce_node_allocatable: (n) => `enforceNodeAllocatable names ${n["key"]}`,
  exclusive_cpus: (n) => `CPUs ${n["cpus"]} belong to this container alone`,
  exclusive_cpus_given: (n) =>
    `${many(n["count"], "CPU")} of its own (${n["cpus"]}) of ${nodes(n)}${reusedCpus(n)}; ${n["reserved"] || "none"} stay reserved`,
  hints_merged: (n) =>
    `${n["resources"] === "" ? "no hints" : `the hints of ${n["resources"]}`} merge to ${nodes(n)}, ${n["preferred"] === true ? "preferred" : "not preferred"}: ${n["admitted"] === true ? "admitted" : "refused"}`,
  hugepages_from_limits: () => "as limited; page sizes without a limit get 0",
  hugepages_from_requests: () => "as requested",
  limit_from_memory: (n) => `${size(n, "bytes")} is the memory left to it`,
  limit_from_process_ids: (n) => `${n["pidsLimit"]} process ids are left to it`,
  limited_swap: (n) =>
    `LimitedSwap: the request's part (${size(n, "request")} of ${size(n, "nodeMemory")}) of ${size(n, "swapCapacity")} swap`,
  memory_anywhere: (n) => `of any NUMA node: ${because(n)}`,
  memory_given: (n) => `${size(n, "size")} of ${nodes(n)}`,
  memory_from_limit: (n) => `${ownerWord(n)} memory limit of ${size(n, "bytes")}`,
  memory_high: (n) =>
    `throttled at ${n["factor"]} of the way from request ${size(n, "request")} to ${size(n, "ceiling")}`,
  memory_manager: (n) => `the memory manager assigned NUMA node ${n["numaNodes"]}`,
  memory_not_managed: (n) => `the NUMA node of memory is not considered: ${because(n)}`,
  memory_qos_off: () => "not throttled: the gate MemoryQoS is off",
  memory_reservation: (n) =>
    n["policy"] === "Off" ? "not protected: the gate MemoryQoS is off" : `${protector(n)}: request ${size(n, "bytes")}`,
  memory_table: (n) =>
    `${size(n, "total")} less ${size(n, "systemReserved")} for the system is ${size(n, "allocatable")}, of which containers hold ${size(n, "reserved")}`,
  memory_unset: (n) => `unlimited: ${because(n)}`,
  no_exclusive_cpus: (n) => `no container gets CPUs of its own: ${because(n)}`,
  no_swap: (n) => `no swap: ${because(n)}`,
  oom_group: (n) => `an OOM kill takes the whole container: ${because(n)}`,
  oom_score_adj: (n) => `${n["qosClass"]} on a node with ${size(n, "memoryCapacity")}`,
  page_sizes_of_node: (n) => `every page size of the node; those not named get ${n["unnamed"]}`,
  pages_left_out: (n) => `pages of ${n["sizes"]} are left out: ${because(n)}`,
  part_of_claims: (n) =>
    `${n["milliCpu"] === undefined ? size(n, "bytes") : `${n["milliCpu"]}m`} of the ${n["resource"]} in it ${n["milliCpu"] === undefined ? "is" : "are"} given by claims`,
  plugin_not_asked: (n) =>
    `the plugin would be asked which ${many(n["size"], "device")} it prefers; the natural order of ids is used instead`,
  pod_pids_limit: (n) => `podPidsLimit is ${n["podPidsLimit"]}`,
  pods_enforced: () => "enforceNodeAllocatable names pods: capacity less the reserves",
  pods_from_configuration: (n) => `maxPods ${n["maxPods"]}, podsPerCore ${n["podsPerCore"]}`,
  pods_not_enforced: () => "enforceNodeAllocatable does not name pods: the whole capacity",
  pods_of_other_nodes: (n) =>
    `${many(n["left"], "pod")} of other nodes${String(n["nodes"]).includes("no node") ? ", or of none yet," : ""} left out (${n["nodes"]}), ${n["counted"]} of this node counted`,
  qos_reserved: (n) =>
    `qosReserved keeps ${n["percent"]} % of the better tiers' requests out of ${size(n, "allocatable")}`,
  quota_from_limit: (n) => `${ownerWord(n)} cpu limit of ${n["milliCpu"]}m in every ${n["periodMicros"]} µs`,
  quota_off: (n) => `no quota: ${because(n)}`,
  quota_unset: (n) => `unlimited: ${because(n)}`,
  largest_pod_not_searched: (n) => `not searched for on ${n["numaNodes"]} NUMA nodes, which are more than 8`,
  refused: refusedText,
  reserved_cpus: (n) =>
    `CPUs ${n["cpus"]} are kept back: ${because(n)}; ${n["inSharedPool"] === true ? "the shared pool has them too" : "the shared pool is without them"}`,
  resize_pending: (n) =>
    `${n["container"] === undefined ? "the pod as a whole" : `container ${n["container"]}`} has the resources that are allocated, not those of the spec`,
  shared_pool: (n) => `CPUs ${n["cpus"]} are the shared pool${n["because"] === undefined ? "" : `: ${because(n)}`}`,
  shares_from_burstable_requests: (n) => `the tier's pods request ${n["milliCpu"]}m cpu`,
  shares_from_cpu: (n) => `${n["milliCpu"]}m cpu are left to it`,
  shares_from_limit: (n) => `no cpu request: its limit of ${n["milliCpu"]}m counts`,
  shares_from_request: (n) => `${n["milliCpu"]}m cpu requested`,
  topology_policy: (n) =>
    n["policy"] === "none"
      ? "topologyManagerPolicy is none: hints are not asked for"
      : `topologyManagerPolicy ${n["policy"]} merges the hints of each ${n["scope"]} over NUMA nodes ${n["numaNodes"]}`,
  weight_from_shares: (n) => `cgroup v2's form of ${n["cpuShares"]} shares (the ${n["rule"]} rule)`,
  unhealthy_devices: (n) =>
    n["plugin"] === "stopped" ? "its plugin has stopped: no device counts" : "unhealthy devices do not count",
} satisfies Partial<Sentences>;
