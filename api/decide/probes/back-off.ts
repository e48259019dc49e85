import { isGateOn, type Profile } from "../../profiles/profile.ts";

/** The restart back-off of a container that keeps ending: the first delay and the longest. */
export interface BackOffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
}
/** kubelet 1.36: initialCrashLoopBackOff, MaxCrashLoopBackOff. */
export const USUAL_BACK_OFF: BackOffLimits = { firstMs: 10_000, longestMs: 300_000 };
/** The limits with the gate ReduceDefaultCrashLoopBackOffDecay. */
const REDUCED_BACK_OFF: BackOffLimits = { firstMs: 1_000, longestMs: 60_000 };

/**
 * The limits of CrashLoopBackOff. `periodMs`: crashLoopBackOff.maxContainerRestartPeriod. kubelet 1.36:
 * newCrashLoopBackOff.
 */
export function restartBackOff(
  profile: Profile,
  named: Readonly<Record<string, boolean>>,
  periodMs: number | undefined,
): BackOffLimits {
  const usual = isGateOn(profile, named, "ReduceDefaultCrashLoopBackOffDecay") ? REDUCED_BACK_OFF : USUAL_BACK_OFF;
  if (periodMs === undefined || !isGateOn(profile, named, "KubeletCrashLoopBackOffMax")) return usual;
  return { firstMs: Math.min(usual.firstMs, periodMs), longestMs: periodMs };
}
