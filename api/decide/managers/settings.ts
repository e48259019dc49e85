import { type Amount, add, ZERO } from "../../model/amount.ts";
import type { Refusal } from "../../model/decision.ts";
import type { Machine } from "../../model/machine.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { reservedOf } from "../allocatable/reservation.ts";
import { configurationOf, gateOn } from "../config.ts";
import type { OptionGates } from "../cpus/options.ts";

/** What the managers read of a kubelet's configuration; an absent or empty field has the kubelet's default. */
export interface Settings {
  readonly cpuPolicy: string;
  readonly cpuOptions: Readonly<Record<string, string>>;
  readonly optionGates: OptionGates;
  /** CPUs of systemReserved and kubeReserved together. */
  readonly reservedCpu: Amount;
  readonly reservedSystemCpus: string;
  readonly memoryPolicy: string;
  readonly topologyPolicy: string;
  readonly topologyScope: string;
  readonly topologyOptions: Readonly<Record<string, string>>;
  /** The gate PodLevelResourceManagers is on. */
  readonly podLevel: boolean;
}

/** Errors: a reserve that cannot be read. */
export function settingsOf(snapshot: Snapshot): Result<Settings, Refusal> {
  const config = configurationOf(snapshot);
  const reserved = reservedOf(config);
  if (!reserved.ok) return err({ code: "invalid_configuration", message: reserved.error, needs: [] });
  const { kube, system } = reserved.value;
  return ok({
    cpuPolicy: config.cpuManagerPolicy || "none",
    cpuOptions: config.cpuManagerPolicyOptions ?? {},
    optionGates: {
      alpha: gateOn(config, "CPUManagerPolicyAlphaOptions"),
      beta: gateOn(config, "CPUManagerPolicyBetaOptions"),
    },
    reservedCpu: add(kube["cpu"]?.amount ?? ZERO, system["cpu"]?.amount ?? ZERO),
    reservedSystemCpus: config.reservedSystemCPUs ?? "",
    memoryPolicy: config.memoryManagerPolicy || "None",
    topologyPolicy: config.topologyManagerPolicy || "none",
    topologyScope: config.topologyManagerScope || "container",
    topologyOptions: config.topologyManagerPolicyOptions ?? {},
    podLevel: gateOn(config, "PodLevelResourceManagers"),
  });
}

/** The parts of the machine that the policies in force cannot do without and that were not posted. */
export function missingMachine({ cpuPolicy, memoryPolicy, topologyPolicy }: Settings, machine: Machine): string[] {
  const missing: string[] = [];
  const hasCpus = (machine.cpus ?? []).length > 0;
  const hasNodes = (machine.numaNodes ?? []).length > 0;
  if (cpuPolicy === "static" && !hasCpus) missing.push("machine.cpus");
  if (memoryPolicy === "Static" && !(machine.numaNodes ?? []).some(({ memoryBytes }) => memoryBytes !== undefined)) {
    missing.push("machine.numaNodes");
  } else if (topologyPolicy !== "none" && !hasNodes && !hasCpus) missing.push("machine.numaNodes");
  return missing;
}
