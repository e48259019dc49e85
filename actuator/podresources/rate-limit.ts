/** Calls a second that are answered for good. kubelet 1.36: podresources.DefaultQPS. */
export const CALLS_PER_SECOND = 100;
/** Calls that may come at once. kubelet 1.36: podresources.DefaultBurstTokens. */
export const BURST = 10;

/**
 * A bucket of tokens that begins full; true: the call took one. `nowMs`: a clock that never goes back.
 * kubelet 1.36: LimiterUnaryServerInterceptor.
 */
export function rateLimit(nowMs: () => number): () => boolean {
  let tokens = BURST;
  let last = nowMs();
  return () => {
    const now = nowMs();
    const left = Math.min(BURST, tokens + ((now - last) * CALLS_PER_SECOND) / 1000);
    if (left < 1) return false;
    tokens = left - 1;
    last = now;
    return true;
  };
}
