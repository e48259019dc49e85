import { type Amount, isNegative, isZero, value } from "../../model/amount.ts";
import { countCpus } from "../../model/cpu-set.ts";
import type { ResourceList } from "../../model/fields.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { parseQuantity, type Quantity, unitsQuantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";

export interface Reserved {
  readonly kube: ResourceList;
  readonly system: ResourceList;
}

/** kubelet 1.36: parseResourceList. */
const RESERVABLE: readonly string[] = ["cpu", "memory", "ephemeral-storage", "pid"];

/** kubeReserved and systemReserved; reservedSystemCPUs replaces the cpu of both. kubelet 1.36: cmd/kubelet/app run. */
export function reservedOf(config: KubeletConfiguration): Result<Reserved, string> {
  const kube = config.kubeReserved ?? {};
  const system = config.systemReserved ?? {};
  for (const [field, reserve] of [
    ["kubeReserved", kube],
    ["systemReserved", system],
  ] as const) {
    const odd = Object.keys(reserve).find((name) => !RESERVABLE.includes(name));
    if (odd !== undefined) return err(`kubeletConfiguration.${field}: cannot reserve "${odd}" resource`);
  }
  const list = config.reservedSystemCPUs ?? "";
  if (list === "") return ok({ kube, system });
  const cpus = countCpus(list);
  if (cpus === undefined) return err(`reservedSystemCPUs: \`${list}\` is not a CPU list such as 0-1,4`);
  const { cpu: _dropped, ...kubeWithoutCpu } = kube;
  return ok({ kube: kubeWithoutCpu, system: { ...system, cpu: unitsQuantity(cpus, "DecimalSI") } });
}

const DEFAULT_EVICTION_HARD: Readonly<Record<string, string>> = {
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
};

/** evictionHard in force: any key set drops the other defaults unless mergeDefaultEvictionSettings. */
export function evictionHardOf(config: KubeletConfiguration): Readonly<Record<string, string>> {
  const own = config.evictionHard;
  if (own === null || own === undefined) return DEFAULT_EVICTION_HARD;
  return config.mergeDefaultEvictionSettings === true ? { ...DEFAULT_EVICTION_HARD, ...own } : own;
}

/** A threshold is an amount or a share of a capacity; `null` is "0%" or "100%", which the kubelet ignores. */
export type ThresholdValue = { readonly quantity: Quantity } | { readonly percentage: number } | null;

const SIGNALS: readonly string[] = [
  "memory.available",
  "allocatableMemory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "pid.available",
];
/** What Go's strconv.ParseFloat takes of a plain number. */
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/** Percentages are float32. kubelet 1.36: parseThresholdStatement. */
export function parseThreshold(signal: string, text: string): Result<ThresholdValue, string> {
  if (!SIGNALS.includes(signal)) return err(`unrecognized eviction signal ${signal}`);
  if (text.endsWith("%")) {
    if (text === "0%" || text === "100%") return ok(null);
    const number = text.slice(0, -1);
    if (!NUMBER.test(number)) return err(`eviction threshold ${signal}: \`${text}\` is not a percentage`);
    const percentage = Math.fround(Math.fround(Number(number)) / 100);
    if (percentage < 0) return err(`eviction percentage threshold ${signal} must be >= 0%: ${text}`);
    if (percentage > 1) return err(`eviction percentage threshold ${signal} must be <= 100%: ${text}`);
    return ok({ percentage });
  }
  const quantity = parseQuantity(text);
  if (!quantity.ok) return err(`eviction threshold ${signal}: ${quantity.error.message}`);
  const { amount } = quantity.value;
  if (isNegative(amount) || isZero(amount)) return err(`eviction threshold ${signal} must be positive: ${text}`);
  return ok({ quantity: quantity.value });
}

const EVICTION_RESOURCE: Readonly<Record<string, string>> = {
  "memory.available": "memory",
  "nodefs.available": "ephemeral-storage",
};

/** What hard eviction keeps back of memory and ephemeral-storage. kubelet 1.36: hardEvictionReservation. */
export function evictionReservation(
  config: KubeletConfiguration,
  capacity: ReadonlyMap<string, Quantity>,
): Result<Map<string, Quantity>, string> {
  const reserved = new Map<string, Quantity>();
  for (const [signal, text] of Object.entries(evictionHardOf(config))) {
    const threshold = parseThreshold(signal, text);
    if (!threshold.ok) return threshold;
    const resource = EVICTION_RESOURCE[signal];
    if (resource === undefined || threshold.value === null) continue;
    reserved.set(resource, thresholdQuantity(threshold.value, capacity.get(resource)?.amount ?? 0));
  }
  return ok(reserved);
}

/** kubelet 1.36: GetThresholdQuantity. */
export const thresholdQuantity = (threshold: NonNullable<ThresholdValue>, capacity: Amount): Quantity =>
  "quantity" in threshold
    ? threshold.quantity
    : unitsQuantity(Math.trunc(value(capacity) * threshold.percentage), "BinarySI");
