import {
  curveWeight,
  linearWeight,
  quotaToMilliCpu,
  sharesToMilliCpu,
  weightToMilliCpu,
} from "../api/decide/cgroups/cpu-convert.ts";
import type { CpuRules } from "./plan/milli-cpu.ts";

/** The policy's own conversions, for the causes of drift. */
export const CPU_RULES: CpuRules = {
  linear: linearWeight,
  curve: curveWeight,
  sharesToMilliCpu,
  weightToMilliCpu,
  quotaToMilliCpu,
};
