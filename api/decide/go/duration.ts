/** Whole nanoseconds as Go prints a duration: `1h0m0s`, `1.5s`, `150ms`. Go: time.Duration.String. */
export function goDurationText(nanos: bigint): string {
  const sign = nanos < 0n ? "-" : "";
  const n = nanos < 0n ? -nanos : nanos;
  if (n === 0n) return "0s";
  if (n < 1_000n) return `${sign}${n}ns`;
  if (n < 1_000_000n) return `${sign}${decimal(n, 3)}µs`;
  if (n < 1_000_000_000n) return `${sign}${decimal(n, 6)}ms`;
  const minutes = n / 60_000_000_000n;
  const seconds = `${decimal(n % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  return minutes < 60n ? `${sign}${minutes}m${seconds}` : `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}
/** `n` with its last `places` digits behind the point, zeros at the end left out. */
function decimal(n: bigint, places: number): string {
  const digits = String(n).padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  return fraction === "" ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`;
}
