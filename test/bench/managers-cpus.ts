import { type CpuManager, cpuManager } from "../../api/decide/cpus/manager.ts";
import { cpuPolicy } from "../../api/decide/cpus/policy.ts";
import { freshState } from "../../api/decide/cpus/start.ts";
import { cpuTopology } from "../../api/decide/cpus/topology.ts";
import { ANY_NODE } from "../../api/decide/topology/hint.ts";
import { fromUnits } from "../../api/model/amount.ts";
import { machine } from "../../api/model/machine.ts";
import type { Container, Pod } from "../../api/model/pod.ts";
import { decodedPod, guaranteed } from "../kit/pods.ts";
import { ALL_OPTIONS } from "../kit/profiles.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}

/** 2 sockets, 8 NUMA nodes, 16 uncore caches, 128 cores of two threads: 256 CPUs. */
const CORES = 128;
function largeTopology() {
  const cpus = Array.from({ length: 2 * CORES }, (_, cpu) => {
    const core = cpu % CORES;
    return { cpu, core, socket: core >> 6, numa: core >> 4, uncoreCache: core >> 3 };
  });
  const topology = cpuTopology(machine.parse({ cpus }));
  if (!topology.ok) throw new Error(JSON.stringify(topology.error));
  return topology.value;
}

function cpuPod(uid: string, cpus: number): { pod: Pod; container: Container } {
  const pod = decodedPod(guaranteed(uid, `${cpus}`, "1Gi"));
  return { pod, container: pod.spec.containers[0] as Container };
}

/** Before the measurement, containers of all sizes get a third of the machine's CPUs. */
function managerWith(...options: readonly string[]): CpuManager {
  const policy = cpuPolicy({
    policy: "static",
    topology: largeTopology(),
    options: Object.fromEntries(options.map((name) => [name, "true"])),
    gates: ALL_OPTIONS,
    topologyPolicy: "none",
    reservedCpu: fromUnits(2),
    reservedSystemCpus: "",
  });
  if (!policy.ok || policy.value.name === "none") throw new Error(`no static policy with ${options.join()}`);
  const manager = cpuManager(policy.value, freshState(policy.value));
  for (const cpus of [2, 4, 6, 10, 14, 18, 30]) {
    const { pod, container } = cpuPod(`before-${cpus}`, cpus);
    manager.allocate(pod, container, ANY_NODE);
  }
  return manager;
}

/** One run allocates CPUs to one container and releases them. */
function allocateCase(name: string, cpus: number, ...options: readonly string[]): BenchCase {
  const manager = managerWith(...options);
  const { pod, container } = cpuPod("asked", cpus);
  const run = () => {
    const given = manager.allocate(pod, container, ANY_NODE);
    if (!given.ok) throw new Error(given.error.message);
    manager.removeContainer("asked", "c");
  };
  return { name, run };
}
function hintsCase(name: string, cpus: number): BenchCase {
  const manager = managerWith();
  const { pod, container } = cpuPod("asked", cpus);
  const run = () => {
    if (manager.containerHints(pod, container).get("cpu")?.length === 0) throw new Error("no hints");
  };
  return { name, run };
}

export const CPU_CASES: readonly BenchCase[] = [
  allocateCase("allocate 20 of 256 CPUs on 8 NUMA nodes, packed", 20),
  allocateCase("the same by uncore cache", 20, "prefer-align-cpus-by-uncorecache"),
  allocateCase("the same across NUMA nodes", 20, "distribute-cpus-across-numa"),
  allocateCase("106 CPUs across NUMA nodes", 106, "distribute-cpus-across-numa"),
  allocateCase("the same in whole cores", 106, "distribute-cpus-across-numa", "full-pcpus-only"),
  hintsCase("hints for 20 of 256 CPUs on 8 NUMA nodes", 20),
];
