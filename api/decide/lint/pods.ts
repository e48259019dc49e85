import { isZero, milliValue, value } from "../../model/amount.ts";
import { podCapacity } from "../allocatable/capacity.ts";
import { allocatableOf, totalReservation } from "../allocatable/node-allocatable.ts";
import { evictionReservation, reservedOf } from "../allocatable/reservation.ts";
import { error, type LintFinding, note, warning } from "./finding.ts";
import { capacityOf, type LintInput } from "./input.ts";
import { reserveField } from "./reserve-field.ts";

const DEFAULT_MAX_PODS = 110;

/** How many pods there may be, and what is left for them. */
export function podFindings(input: LintInput): readonly LintFinding[] {
  return [...processIds(input), ...podCount(input), ...nothingLeft(input)];
}

function processIds(input: LintInput): readonly LintFinding[] {
  const { config } = input;
  const perPod = config.podPidsLimit ?? -1;
  const all = capacityOf(input, "pid.available");
  if (perPod <= 0 || all === undefined) return [];
  const pids = value(all);
  const field = "podPidsLimit";
  if (perPod >= pids) {
    const message = `a pod may have ${perPod} processes, and the whole node has ${pids} at most: the limit stops nobody`;
    return [warning({ code: "pod-pids-above-node", field, message, advice: "lower it well below the node's number" })];
  }
  const most = config.maxPods || DEFAULT_MAX_PODS;
  if (perPod * most <= pids || config.evictionHard?.["pid.available"] !== undefined) return [];
  const reserved = ["kubeReserved", "systemReserved"] as const;
  if (reserved.some((list) => config[list]?.["pid"] !== undefined)) return [];
  const message = `${most} pods of ${perPod} processes each may use up the node's ${pids}, and nothing holds any back: neither a reserve of pid nor a threshold of pid.available`;
  const advice = "reserve pid in systemReserved, or set a threshold of pid.available";
  return [note({ code: "pod-pids-exhaust-node", field, message, advice })];
}

function podCount({ config, capacity }: LintInput): readonly LintFinding[] {
  const perCore = config.podsPerCore ?? 0;
  const cpus = Math.floor(milliValue(capacity.get("cpu")?.amount ?? 0) / 1000);
  if (perCore <= 0 || cpus <= 0) return [];
  const most = config.maxPods || DEFAULT_MAX_PODS;
  const taken = podCapacity(cpus, most, perCore);
  const field = "podsPerCore";
  if (taken < most && config.maxPods !== undefined) {
    const message = `${perCore} pods for each of ${cpus} cores are ${taken}: maxPods ${most} is never reached`;
    return [note({ code: "max-pods-not-reached", field, message, advice: "the lower of both counts" })];
  }
  if (perCore * cpus <= most) return [];
  const message = `${perCore} pods for each of ${cpus} cores would be ${perCore * cpus}: maxPods ${most} is lower, so podsPerCore does nothing here`;
  return [
    note({ code: "pods-per-core-idle", field, message, advice: "the lower of both counts", fix: { [field]: null } }),
  ];
}

/** What is more than the capacity keeps the kubelet from starting; this is as much as it. */
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
