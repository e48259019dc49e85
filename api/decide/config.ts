import type { KubeletConfiguration } from "../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Micros, micros } from "../model/units.ts";
import { isGateOn } from "./gate-table.ts";
import { goDurationText } from "./go/duration.ts";

const EMPTY: KubeletConfiguration = {};
export const configurationOf = (snapshot: Snapshot): KubeletConfiguration => snapshot.kubeletConfiguration ?? EMPTY;

/** The feature gates that decisions ask for. */
export type Gate =
  | "CPUManagerPolicyAlphaOptions"
  | "CPUManagerPolicyBetaOptions"
  | "DRAExtendedResource"
  | "DisableCPUQuotaWithExclusiveCPUs"
  | "InPlacePodLevelResourcesVerticalScaling"
  | "MemoryQoS"
  | "NodeDeclaredFeatures"
  | "PodLevelResourceManagers"
  | "PodLevelResources"
  | "QOSReserved"
  | "RuntimeClassInImageCriApi"
  | "TaintTolerationComparisonOperators";

/** Whether a feature gate is on; a gate that the configuration does not name has its 1.36 default. */
export const gateOn = (config: KubeletConfiguration, gate: Gate): boolean => isGateOn(config.featureGates, gate);

/** kubelet 1.36: ValidateKubeletConfiguration. */
export function cfsPeriod(config: KubeletConfiguration): Result<Micros, string> {
  const period = config.cpuCFSQuotaPeriod;
  if (period === undefined) return ok(DEFAULT_PERIOD);
  if (period.nanos >= 1e6 && period.nanos <= 1e9) return ok(micros(period.micros));
  return err(
    `invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {${goDurationText(BigInt(period.nanos))}} must be between 1ms and 1sec, inclusive`,
  );
}
const DEFAULT_PERIOD = micros(100_000);

/** kubelet 1.36: the default of enforceNodeAllocatable is `pods`; `none` switches enforcement off. */
export const enforcementOf = (config: KubeletConfiguration): ReadonlySet<string> =>
  new Set(config.enforceNodeAllocatable ?? ["pods"]);
