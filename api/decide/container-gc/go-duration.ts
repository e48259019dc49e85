/** Whole milliseconds as Go writes a duration: `-1.5s`, `250ms`, `1h0m0.001s`. Go: time.Duration.String. */
export function goDurationText(ms: number): string {
  const sign = ms < 0 ? "-" : "";
  const all = Math.abs(ms);
  if (all === 0) return "0s";
  if (all < 1000) return `${sign}${all}ms`;
  const minutes = Math.floor(all / 60_000);
  const rest = all % 60_000;
  const fraction = String(rest % 1000)
    .padStart(3, "0")
    .replace(/0+$/, "");
  const seconds = `${Math.floor(rest / 1000)}${fraction === "" ? "" : `.${fraction}`}s`;
  if (minutes === 0) return sign + seconds;
  const hours = Math.floor(minutes / 60);
  return `${sign}${hours === 0 ? "" : `${hours}h`}${minutes % 60}m${seconds}`;
}
