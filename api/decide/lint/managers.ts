import { fromUnits, isZero, milliValue, value } from "../../model/amount.ts";
import { quantityOf } from "../../model/quantity.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import { podCapacity } from "../allocatable/capacity.ts";
import { allocatableOf, overReserved, totalReservation } from "../allocatable/node-allocatable.ts";
import { evictionReservation, reservedOf } from "../allocatable/reservation.ts";
import { staticOptions } from "../cpus/options.ts";
import { NO_RESERVED_CPU, newStaticPolicyError, nonePolicy, unfitForTopology } from "../cpus/policy.ts";
import { readThresholds } from "../eviction/configuration.ts";
import { type Settings, settingsOf, startOrFaults } from "../managers/start.ts";
import { memoryReservation, systemReservedOf } from "../memory/reserved-memory.ts";
import { type SettingFault, settingFault } from "../setting-fault.ts";
import { topologyOptions } from "../topology/policy.ts";
import { error, type LintFinding, note, refusal, warning } from "./finding.ts";
import { capacityOf, type LintInput } from "./input.ts";

/** Findings about the number of pods and the resources left for them. */
export function podFindings(input: LintInput): readonly LintFinding[] {
  return [...processIds(input), ...podCount(input), ...nothingLeft(input)];
}

function processIds(input: LintInput): readonly LintFinding[] {
  const { config } = input;
  const perPod = config.podPidsLimit;
  const all = capacityOf(input, "pid.available");
  if (perPod <= 0 || all === undefined) return [];
  const pids = value(all);
  const field = "podPidsLimit";
  if (perPod >= pids) {
    const message = `a pod may have ${perPod} processes, and the whole node has ${pids} at most: the limit stops nobody`;
    return [warning({ code: "pod-pids-above-node", field, message, advice: "lower it well below the node's number" })];
  }
  const most = config.maxPods;
  if (perPod * most <= pids || config.evictionHard["pid.available"] !== undefined) return [];
  const reserved = ["kubeReserved", "systemReserved"] as const;
  if (reserved.some((list) => config[list]["pid"] !== undefined)) return [];
  const message = `${most} pods of ${perPod} processes each may use up the node's ${pids}, and nothing holds any back: neither a reserve of pid nor a threshold of pid.available`;
  const advice = "reserve pid in systemReserved, or set a threshold of pid.available";
  return [note({ code: "pod-pids-exhaust-node", field, message, advice })];
}

function podCount({ config, capacity }: LintInput): readonly LintFinding[] {
  const { podsPerCore: perCore } = config;
  const cpus = Math.floor(milliValue(capacity.get("cpu")?.amount ?? 0) / 1000);
  if (perCore <= 0 || cpus <= 0) return [];
  const most = config.maxPods;
  const taken = podCapacity(cpus, { maxPods: most, podsPerCore: perCore });
  const field = "podsPerCore";
  if (taken < most && config.given.maxPods !== undefined) {
    const message = `${perCore} pods for each of ${cpus} cores are ${taken}: maxPods ${most} is never reached`;
    return [note({ code: "max-pods-not-reached", field, message, advice: "the lower of both counts" })];
  }
  if (perCore * cpus <= most) return [];
  const message = `${perCore} pods for each of ${cpus} cores would be ${perCore * cpus}: maxPods ${most} is lower, so podsPerCore does nothing here`;
  return [
    note({ code: "pods-per-core-idle", field, message, advice: "the lower of both counts", fix: { [field]: null } }),
  ];
}

/** Reports reservations that equal the capacity; larger ones keep the kubelet from starting. */
function nothingLeft({ config, capacity }: LintInput): readonly LintFinding[] {
  const eviction = evictionReservation(config, capacity);
  const reserved = reservedOf(config);
  if (!eviction.ok || !reserved.ok) return [];
  const { kube, system } = reserved.value;
  const total = totalReservation(capacity, kube, system, eviction.value);
  const left = allocatableOf(capacity, total);
  return ["cpu", "memory", "ephemeral-storage"].flatMap((name) => {
    const has = capacity.get(name);
    if (has === undefined || isZero(has.amount) || total.get(name) === undefined) return [];
    const { amount } = left.get(name) ?? { amount: 0 };
    if (!isZero(amount)) return [];
    const message = `kubeReserved, systemReserved and evictionHard keep back all ${has.text} of ${name}: nothing is left for pods`;
    return [error({ code: "nothing-allocatable", field: reserveField(config, name), message, advice: "reserve less" })];
  });
}

/** The field that reserves the largest share of a resource: the first to reduce if it is too much. */
function reserveField(config: EffectiveConfiguration, resource: string): string {
  if (resource === "cpu" && config.reservedSystemCPUs !== "") return "reservedSystemCPUs";
  const has = (field: "kubeReserved" | "systemReserved"): boolean => config[field][resource] !== undefined;
  return has("kubeReserved") ? "kubeReserved" : has("systemReserved") ? "systemReserved" : "evictionHard";
}

/** Lists the settings that the managers refuse to start with: on the snapshot's machine if there is one, else on any. */
export function managerFindings(input: LintInput): readonly LintFinding[] {
  const { snapshot, config, capacity } = input;
  const settings = settingsOf({ kubeletConfiguration: config });
  // an unreadable reserve or threshold has its own finding
  if (!settings.ok || readThresholds(config).faults.length > 0) return [];
  const started = snapshot === null ? null : startOrFaults(snapshot, settings.value);
  const faults = started?.ok ? (started.value.ok ? [] : started.value.error) : onAnyMachine(input, settings.value);
  const places = faults.map((fault) => advised(placed(fault, settings.value), settings.value));
  const eviction = evictionReservation(config, capacity);
  const reserved = reservedOf(config);
  if (!eviction.ok || !reserved.ok) return places;
  const { kube, system } = reserved.value;
  const over = overReserved(capacity, totalReservation(capacity, kube, system, eviction.value));
  const advice = "reserve less, or evict later: kubeReserved, systemReserved and evictionHard are taken off together";
  return [
    ...places,
    ...over.map((text) => {
      const field = reserveField(config, /Resource "([^"]*)"/.exec(text)?.[1] ?? "");
      return refusal("reserved-above-capacity", settingFault(field, text), advice);
    }),
  ];
}

function onAnyMachine({ config }: LintInput, settings: Settings): readonly SettingFault[] {
  const faults: SettingFault[] = [];
  const topology =
    settings.topologyPolicy === "none" ? undefined : topologyOptions(settings.topologyOptions, settings.topologyGates);
  if (topology?.ok === false) faults.push(settingFault("topologyManagerPolicyOptions", topology.error));
  const cpu = cpuFault(settings);
  if (cpu !== undefined) faults.push(settingFault("cpuManagerPolicy", cpu));
  if (settings.memoryPolicy !== "Static") return faults;
  const memory = memoryFault(config);
  if (memory !== undefined) faults.push(settingFault("memoryManagerPolicy", memory));
  return faults;
}

function cpuFault({ cpuPolicy, cpuOptions, cpuGates, topologyPolicy, ...reserve }: Settings): string | undefined {
  if (cpuPolicy === "none") {
    const none = nonePolicy(cpuOptions);
    return none.ok ? undefined : none.error;
  }
  if (reserve.reservedSystemCpus === "" && isZero(reserve.reservedCpu)) return NO_RESERVED_CPU;
  const options = staticOptions(cpuOptions, cpuGates);
  const why = !options.ok ? options.error : options.value.alignBySocket ? unfitForTopology(topologyPolicy) : undefined;
  return why && newStaticPolicyError(why);
}

/** Why the memory reserve is wrong; a threshold in percent needs the machine's size. */
function memoryFault(config: LintInput["config"]): string | undefined {
  const hard = readThresholds(config).thresholds.find((t) => t.signal === "memory.available" && t.graceMs === 0);
  const reserved = reservedOf(config);
  if (!reserved.ok || (hard !== undefined && "percentage" in hard.value)) return undefined;
  const eviction = new Map(hard !== undefined && "quantity" in hard.value ? [["memory", hard.value.quantity]] : []);
  const any = new Map([["memory", quantityOf(fromUnits(Number.MAX_SAFE_INTEGER), "BinarySI")]]);
  const given = config.reservedMemory;
  const nodes = given.map(({ numaNode }) => numaNode);
  const held = systemReservedOf(nodes, memoryReservation(any, reserved.value, eviction), given);
  return held.ok ? undefined : held.error;
}

/** The field that a person would change. */
function placed(fault: SettingFault, settings: Settings): SettingFault {
  const { field, message } = fault;
  if (field === "topologyManagerPolicy" && !topologyOptions(settings.topologyOptions, settings.topologyGates).ok) {
    return { field: "topologyManagerPolicyOptions", message };
  }
  if (field === "memoryManagerPolicy" && /reserved memory|system reserved|the total amount|covert/.test(message)) {
    return { field: "reservedMemory", message };
  }
  if (field !== "cpuManagerPolicy") return fault;
  if (message === NO_RESERVED_CPU || message.startsWith("reserved-cpus") || message.startsWith("unable to parse")) {
    return { field: "reservedSystemCPUs", message };
  }
  return /option|incompatible|Align by socket/.test(message) ? { field: "cpuManagerPolicyOptions", message } : fault;
}

function advised(fault: SettingFault, settings: Settings): LintFinding {
  const { field, message } = fault;
  if (message === NO_RESERVED_CPU) {
    return refusal(
      "static-without-reserved-cpu",
      fault,
      "the static policy needs CPUs for the system: set reservedSystemCPUs, or cpu in kubeReserved or systemReserved",
    );
  }
  if (field === "cpuManagerPolicyOptions") {
    const isNone = settings.cpuPolicy === "none";
    const advice = isNone
      ? "options belong to the static policy: set it, or take them out"
      : "take one of the options out";
    return refusal("cpu-policy-options", fault, advice, isNone ? { cpuManagerPolicyOptions: null } : null);
  }
  if (field === "topologyManagerPolicyOptions")
    return refusal("topology-policy-options", fault, "take the option out, or correct it");
  if (message.startsWith("could not restore state")) {
    return refusal("state-file", fault, "drain the node and remove the state file before the kubelet starts with this");
  }
  if (field === "reservedMemory") {
    const { reserved } = reservedValueIn(message);
    const advice = `of all NUMA nodes together it has to be what kubeReserved, systemReserved and evictionHard keep back${reserved}`;
    return refusal("reserved-memory", fault, advice);
  }
  return refusal("manager-refuses", fault, "change the policy, or what it asks of the machine");
}
function reservedValueIn(message: string): { readonly reserved: string } {
  const value = /the value "([^"]*)"/.exec(message)?.[1];
  return { reserved: value === undefined ? "" : `: ${value}` };
}
