import type { Reloaded, SettingChange } from "../../actuator/reload.ts";

/** `settings read again: syncSeconds 1 -> 2; waits for a restart: cgroupRoot /nodewise -> /n`, in one line. */
export function reloadText({ taken, left }: Reloaded): string {
  const parts = [
    ...(taken.length === 0 ? [] : [`settings read again: ${changes(taken)}`]),
    ...(left.length === 0 ? [] : [`waits for a restart: ${changes(left)}`]),
  ];
  return parts.length === 0 ? "settings read again: nothing is different" : parts.join("; ");
}

const changes = (list: readonly SettingChange[]): string =>
  list.map(({ setting, from, to }) => `${setting} ${shown(from)} -> ${shown(to)}`).join(", ");

function shown(value: unknown): string {
  if (value === undefined) return "unset";
  // a Go duration
  if (typeof value === "object" && value !== null && "millis" in value) return `${Number(value.millis) / 1000}s`;
  return String(value);
}
