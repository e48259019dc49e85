import type { KubeletConfiguration } from "../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Micros, micros } from "../model/units.ts";

const EMPTY: KubeletConfiguration = {};
export const configurationOf = (snapshot: Snapshot): KubeletConfiguration => snapshot.kubeletConfiguration ?? EMPTY;

const ALPHA_OFF = [
  "CPUManagerPolicyAlphaOptions",
  "MemoryQoS",
  "PodLevelResourceManagers",
  "QOSReserved",
  "RuntimeClassInImageCriApi",
  "TaintTolerationComparisonOperators",
] as const;
const BETA_ON = [
  "CPUManagerPolicyBetaOptions",
  "DRAExtendedResource",
  "DisableCPUQuotaWithExclusiveCPUs",
  "InPlacePodLevelResourcesVerticalScaling",
  "NodeDeclaredFeatures",
  "PodLevelResources",
] as const;
export type Gate = (typeof ALPHA_OFF)[number] | (typeof BETA_ON)[number];

/** Whether a feature gate is on; a gate that the configuration does not name has its 1.36 default. */
export function gateOn(config: KubeletConfiguration, gate: Gate): boolean {
  const gates = config.featureGates;
  const named = gates?.[gate];
  if (named !== undefined) return named;
  const beta = (BETA_ON as readonly string[]).includes(gate);
  return gates?.[beta ? "AllBeta" : "AllAlpha"] ?? beta;
}

/** kubelet 1.36: ValidateKubeletConfiguration. */
export function cfsPeriod(config: KubeletConfiguration): Result<Micros, string> {
  const period = config.cpuCFSQuotaPeriod;
  if (period === undefined) return ok(DEFAULT_PERIOD);
  if (period.nanos >= 1e6 && period.nanos <= 1e9) return ok(micros(period.micros));
  return err(
    `invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) ${period.text} must be between 1ms and 1sec, inclusive`,
  );
}
const DEFAULT_PERIOD = micros(100_000);

/** kubelet 1.36: the default of enforceNodeAllocatable is `pods`; `none` switches enforcement off. */
export const enforcementOf = (config: KubeletConfiguration): ReadonlySet<string> =>
  new Set(config.enforceNodeAllocatable ?? ["pods"]);
