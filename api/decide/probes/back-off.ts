import { isGateOn, type Profile } from "../../profiles/profile.ts";

/** The restart back-off of a container that keeps ending: the first delay and the longest. */
export interface BackOffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
}
/** How long something is held back, and when it was held back anew. */
export interface BackOff {
  readonly delayMs: number;
  readonly updatedAtMs: number;
}
/**
 * Whether a back-off has expired: if nothing failed for twice the longest delay, the next failure starts with the
 * first delay again. client-go: hasExpired.
 */
export const isOver = ({ updatedAtMs }: BackOff, atMs: number, { longestMs }: BackOffLimits): boolean =>
  atMs - updatedAtMs > 2 * longestMs;
/** After one more failure, at `atMs`: twice as long each time, up to the limit. client-go: flowcontrol.Backoff.Next. */
export function raised(
  before: BackOff | undefined,
  atMs: number,
  { nowMs, limits }: { readonly nowMs: number; readonly limits: BackOffLimits },
): BackOff {
  const isFirst = before === undefined || isOver(before, atMs, limits);
  return { delayMs: isFirst ? limits.firstMs : Math.min(before.delayMs * 2, limits.longestMs), updatedAtMs: nowMs };
}

/** kubelet 1.36: initialCrashLoopBackOff, MaxCrashLoopBackOff. */
export const CRASH_LOOP_BACK_OFF: BackOffLimits = { firstMs: 10_000, longestMs: 300_000 };
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
  const usual = isGateOn(profile, named, "ReduceDefaultCrashLoopBackOffDecay") ? REDUCED_BACK_OFF : CRASH_LOOP_BACK_OFF;
  if (periodMs === undefined || !isGateOn(profile, named, "KubeletCrashLoopBackOffMax")) return usual;
  return { firstMs: Math.min(usual.firstMs, periodMs), longestMs: periodMs };
}
