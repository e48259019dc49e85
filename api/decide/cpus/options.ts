import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { OptionGates } from "../../profiles/profile.ts";
import { parseBool, quote } from "../go/strconv.ts";

/** `cpuManagerPolicyOptions` of the static policy. kubelet 1.36: StaticPolicyOptions. */
export interface StaticOptions {
  readonly fullPcpusOnly: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly alignBySocket: boolean;
  readonly distributeAcrossCores: boolean;
  readonly strictReservation: boolean;
  readonly preferUncoreCache: boolean;
  /** Whether a distribution over NUMA nodes stays within one socket if possible. */
  readonly distributesBySocket: boolean;
  /** Whether a container that has CPUs keeps them, so that full-pcpus-only applies to new containers only. */
  readonly keepsHeldCpus: boolean;
}
const FULL_PCPUS = "full-pcpus-only";
const ACROSS_NUMA = "distribute-cpus-across-numa";
export const BY_SOCKET = "align-by-socket";
const ACROSS_CORES = "distribute-cpus-across-cores";
const BY_CACHE = "prefer-align-cpus-by-uncorecache";

const OPTIONS = new Map<string, Exclude<keyof StaticOptions, "distributesBySocket" | "keepsHeldCpus">>([
  [FULL_PCPUS, "fullPcpusOnly"],
  [ACROSS_NUMA, "distributeAcrossNuma"],
  [BY_SOCKET, "alignBySocket"],
  [ACROSS_CORES, "distributeAcrossCores"],
  ["strict-cpu-reservation", "strictReservation"],
  [BY_CACHE, "preferUncoreCache"],
]);

/**
 * Parses the options; the error is the kubelet's. If there are several faults, the kubelet reports a random one; this
 * reports the first by option name, and conflicts last. kubelet 1.36: NewStaticPolicyOptions.
 */
export function staticOptions(
  values: Readonly<Record<string, string>>,
  gates: OptionGates,
): Result<StaticOptions, string> {
  const set = new Set<keyof StaticOptions>();
  for (const name of Object.keys(values).sort()) {
    const option = OPTIONS.get(name);
    const level = own(gates.behaviour.cpuManagerPolicyOptions, name);
    if (option === undefined || level === undefined) return err(`unknown CPU Manager Policy option: ${quote(name)}`);
    if (level !== "stable" && !gates[level]) {
      return err(
        `CPU Manager Policy ${level === "alpha" ? "Alpha" : "Beta"}-level Options not enabled, but option ${quote(name)} provided`,
      );
    }
    const value = parseBool(values[name] as string);
    if (!value.ok) return err(`bad value for option ${quote(name)}: ${value.error}`);
    if (value.value) set.add(option);
  }
  const options: StaticOptions = {
    fullPcpusOnly: set.has("fullPcpusOnly"),
    distributeAcrossNuma: set.has("distributeAcrossNuma"),
    alignBySocket: set.has("alignBySocket"),
    distributeAcrossCores: set.has("distributeAcrossCores"),
    strictReservation: set.has("strictReservation"),
    preferUncoreCache: set.has("preferUncoreCache"),
    distributesBySocket: gates.behaviour.distributesBySocket && set.has("alignBySocket"),
    keepsHeldCpus: gates.behaviour.keepsHeldCpus,
  };
  const conflict = conflictIn(options);
  return conflict === undefined ? ok(options) : err(conflict);
}

function conflictIn(options: StaticOptions): string | undefined {
  const pairs = [
    [options.fullPcpusOnly && options.distributeAcrossCores, FULL_PCPUS, ACROSS_CORES],
    [options.distributeAcrossNuma && options.distributeAcrossCores, ACROSS_NUMA, ACROSS_CORES],
    [options.preferUncoreCache && options.distributeAcrossCores, BY_CACHE, ACROSS_CORES],
    [options.preferUncoreCache && options.distributeAcrossNuma, BY_CACHE, ACROSS_NUMA],
  ] as const;
  const both = pairs.find(([isBoth]) => isBoth);
  return both && `static policy options ${both[1]} and ${both[2]} can not be used at the same time`;
}
