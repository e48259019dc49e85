import { err, ok, type Result } from "../../base/result.ts";
import { type Amount, add, ZERO } from "../../model/amount.ts";
import type { Refusal } from "../../model/decision.ts";
import { knowsMemory, type Machine } from "../../model/machine.ts";
import { podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";
import type { OptionGates } from "../../profiles/profile.ts";
import { nodeCapacity } from "../allocatable/capacity.ts";
import { evictionReservation, reservedOf } from "../allocatable/reservation.ts";
import type { CpuState, Holder } from "../cpus/checkpoint.ts";
import { type CpuPolicy, cpuPolicy, nonePolicy } from "../cpus/policy.ts";
import { startState } from "../cpus/start.ts";
import { cpuTopology } from "../cpus/topology.ts";
import type { StateForm } from "../go/state-data.ts";
import type { MemoryFault } from "../memory/machine-memory.ts";
import { memoryReservation, reservedMemoryIssues } from "../memory/reserved-memory.ts";
import { type StartedMemory, startMemory } from "../memory/start.ts";
import { Reasons } from "../reasons.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { type PolicyError, type TopologyPolicy, topologyPolicy } from "../topology/policy.ts";

/** Policies and states with which a kubelet starts. */
export interface Started {
  readonly topology: TopologyPolicy;
  readonly cpuPolicy: CpuPolicy;
  readonly cpuState: CpuState;
  readonly memory: StartedMemory;
}
/** The started managers, or the kubelet's errors in the order in which it would find them. */
type Start = Result<Started, readonly string[]>;

const NO_MACHINE: Machine = {};

/** Starts the managers of a node. Errors of the outer result: what this cannot answer at all. */
export function startManagers(snapshot: EffectiveSnapshot, settings: Settings): Result<Start, Refusal> {
  const started = startOrFaults(snapshot, settings);
  if (!started.ok || started.value.ok) return started as Result<Start, Refusal>;
  return ok(err(started.value.error.map(({ message }) => message)));
}

/** Starts the managers, with the setting that each error is about. */
export function startOrFaults(
  snapshot: EffectiveSnapshot,
  settings: Settings,
): Result<Result<Started, readonly SettingFault[]>, Refusal> {
  const machine = snapshot.machine ?? NO_MACHINE;
  const missing = missingMachine(settings, machine);
  if (missing.length > 0) {
    const isWithoutMemory = (machine.numaNodes ?? []).length > 0;
    const posted = missing.map((path) =>
      path === "machine.numaNodes" && isWithoutMemory
        ? "memoryBytes of each of machine.numaNodes, which memoryManagerPolicy Static counts and lscpu does not tell"
        : path,
    );
    const message = `the managers' policies need the machine's topology: post ${posted.join(" and ")} (\`nodewise snapshot\` prints it, and cAdvisor's MachineInfo is taken as it is)`;
    return err({ code: "needs_input", message, needs: missing });
  }
  const errors: SettingFault[] = [];
  const topology = startTopology(machine, settings, errors);
  if (!topology.ok) return topology;
  const cpus = startCpus(snapshot, machine, settings, errors);
  const memory = startMemoryManager(snapshot, machine, settings, errors);
  if (!memory.ok) return memory;
  if (topology.value === undefined || cpus === undefined || memory.value === undefined) return ok(err(errors));
  return ok(errors.length > 0 ? err(errors) : ok({ topology: topology.value, ...cpus, memory: memory.value }));
}

/** The bound of this answer is no error of the kubelet's. */
function faultOf(
  field: string,
  { code, message }: PolicyError | MemoryFault,
  errors: SettingFault[],
): Result<undefined, Refusal> {
  if (code === "bound") return err({ code: "too_large", message, needs: [] });
  errors.push(settingFault(field, message));
  return ok(undefined);
}

function startTopology(
  { cpus = [], numaNodes, distances }: Machine,
  { topologyPolicy: policy, topologyScope: scope, topologyOptions: options, topologyGates: gates }: Settings,
  errors: SettingFault[],
): Result<TopologyPolicy | undefined, Refusal> {
  const ids = numaNodes?.map(({ id }) => id) ?? [...new Set(cpus.map(({ numa }) => numa))].sort((a, b) => a - b);
  const nodes = ids.map((id, i) => ({ id, distances: distances?.[i] }));
  const started = topologyPolicy({ policy, scope, options, gates, nodes });
  return started.ok ? started : faultOf("topologyManagerPolicy", started.error, errors);
}

function startCpus(
  snapshot: EffectiveSnapshot,
  machine: Machine,
  settings: Settings,
  errors: SettingFault[],
): Pick<Started, "cpuPolicy" | "cpuState"> | undefined {
  const policy = cpuPolicyOf(machine, settings);
  if (!policy.ok) {
    errors.push(settingFault("cpuManagerPolicy", policy.error));
    return undefined;
  }
  const file = snapshot.assignments?.cpu_manager_state;
  const containers = containerIds(snapshot);
  const state = startState({ ...settings, policy: policy.value, file, containers });
  if (state.ok) return { cpuPolicy: policy.value, cpuState: state.value };
  errors.push(settingFault("cpuManagerPolicy", state.error));
  return undefined;
}

/** Files of the oldest version know containers by their ids. */
function containerIds({ pods = [] }: Snapshot): ReadonlyMap<string, Holder> {
  const ids = new Map<string, Holder>();
  for (const pod of pods) {
    for (const { name, containerID = "" } of [
      ...(pod.status?.initContainerStatuses ?? []),
      ...(pod.status?.containerStatuses ?? []),
    ]) {
      if (containerID !== "") ids.set(containerID.replace(/^.*:\/\//, ""), { uid: podUid(pod) ?? "", container: name });
    }
  }
  return ids;
}

function cpuPolicyOf(machine: Machine, settings: Settings): Result<CpuPolicy, string> {
  // without assigned CPUs, the topology does not matter
  if ((machine.cpus ?? []).length === 0) return nonePolicy(settings.cpuOptions);
  const topology = cpuTopology(machine);
  if (!topology.ok) return err(topology.error.map(({ path, message }) => `${path}: ${message}`).join("; "));
  return cpuPolicy({
    policy: settings.cpuPolicy,
    topology: topology.value,
    options: settings.cpuOptions,
    gates: settings.cpuGates,
    topologyPolicy: settings.topologyPolicy,
    reservedCpu: settings.reservedCpu,
    reservedSystemCpus: settings.reservedSystemCpus,
  });
}

function startMemoryManager(
  snapshot: EffectiveSnapshot,
  machine: Machine,
  { memoryPolicy: policy, profile, podLevel }: Settings,
  errors: SettingFault[],
): Result<StartedMemory | undefined, Refusal> {
  const config = snapshot.kubeletConfiguration;
  const capacity = nodeCapacity(snapshot, new Reasons<string>("off"), []);
  const eviction = evictionReservation(config, capacity);
  const reserved = reservedOf(config);
  if (!eviction.ok) return err({ code: "invalid_configuration", message: eviction.error, needs: [] });
  if (!reserved.ok) return err({ code: "invalid_configuration", message: reserved.error, needs: [] });
  const reservedMemory = config.reservedMemory;
  errors.push(...reservedMemoryIssues(reservedMemory).map((text) => settingFault("reservedMemory", text)));
  const started = startMemory({
    policy,
    numaNodes: (machine.numaNodes ?? []).map(({ id, memoryBytes = 0, hugepages }) => ({ id, memoryBytes, hugepages })),
    reservation: memoryReservation(capacity, reserved.value, eviction.value),
    reservedMemory,
    profile,
    podLevel,
    file: snapshot.assignments?.memory_manager_state,
  });
  return started.ok ? started : faultOf("memoryManagerPolicy", started.error, errors);
}

/** The part of a kubelet's configuration that the managers read. */
export interface Settings extends StateForm {
  readonly cpuPolicy: string;
  readonly cpuOptions: Readonly<Record<string, string>>;
  readonly cpuGates: OptionGates;
  /** CPUs of systemReserved and kubeReserved together. */
  readonly reservedCpu: Amount;
  readonly reservedSystemCpus: string;
  readonly memoryPolicy: string;
  readonly topologyPolicy: string;
  readonly topologyScope: string;
  readonly topologyOptions: Readonly<Record<string, string>>;
  readonly topologyGates: OptionGates;
  /** The gate InPlacePodVerticalScaling. */
  readonly inPlaceResize: boolean;
}

/** Errors: a reserve that cannot be read. */
export function settingsOf(snapshot: EffectiveSnapshot): Result<Settings, Refusal> {
  const config = snapshot.kubeletConfiguration;
  const reserved = reservedOf(config);
  if (!reserved.ok) return err({ code: "invalid_configuration", message: reserved.error, needs: [] });
  const { kube, system } = reserved.value;
  const { profile } = config;
  const { behaviour } = profile;
  return ok({
    profile,
    cpuPolicy: config.cpuManagerPolicy,
    cpuOptions: config.cpuManagerPolicyOptions,
    cpuGates: {
      alpha: gateOn(config, "CPUManagerPolicyAlphaOptions"),
      beta: gateOn(config, "CPUManagerPolicyBetaOptions"),
      behaviour,
    },
    topologyGates: {
      alpha: gateOn(config, "TopologyManagerPolicyAlphaOptions"),
      beta: gateOn(config, "TopologyManagerPolicyBetaOptions"),
      behaviour,
    },
    reservedCpu: add(kube["cpu"]?.amount ?? ZERO, system["cpu"]?.amount ?? ZERO),
    reservedSystemCpus: config.reservedSystemCPUs,
    memoryPolicy: config.memoryManagerPolicy,
    topologyPolicy: config.topologyManagerPolicy,
    topologyScope: config.topologyManagerScope,
    topologyOptions: config.topologyManagerPolicyOptions,
    podLevel: gateOn(config, "PodLevelResourceManagers"),
    inPlaceResize: gateOn(config, "InPlacePodVerticalScaling"),
    exclusiveResize: gateOn(config, "InPlacePodVerticalScalingExclusiveCPUs"),
  });
}

/** The parts of the machine that the policies in force cannot do without and that were not posted. */
function missingMachine({ cpuPolicy, memoryPolicy, topologyPolicy }: Settings, machine: Machine): string[] {
  const missing: string[] = [];
  const hasCpus = (machine.cpus ?? []).length > 0;
  const hasNodes = (machine.numaNodes ?? []).length > 0;
  if (cpuPolicy === "static" && !hasCpus) missing.push("machine.cpus");
  if (memoryPolicy === "Static" && !knowsMemory(machine)) {
    missing.push("machine.numaNodes");
  } else if (topologyPolicy !== "none" && !hasNodes && !hasCpus) missing.push("machine.numaNodes");
  return missing;
}
