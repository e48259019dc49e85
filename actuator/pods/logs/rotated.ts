import { readdir } from "node:fs/promises";
import { byText } from "../../../api/model/order.ts";

/** A log that a container's log was rotated into. */
export interface RotatedLog {
  readonly name: string;
  /** `20260101-000000`: when it was rotated, in the local time of that node; later ones sort behind earlier ones. */
  readonly stamp: string;
  readonly isCompressed: boolean;
}
/** Files beside a container's log under its name. */
interface RotatedLogs {
  /** The rotated logs, oldest first, each once. */
  readonly inUse: readonly RotatedLog[];
  /** Names of what a rotation that was cut short left: temporary files, and logs that have been compressed. */
  readonly unused: readonly string[];
}

export const COMPRESSED = ".gz";
export const TEMPORARY = ".tmp";
const SUFFIX = /^(\d{8}-\d{6})(\.gz)?(\.tmp)?$/;

/**
 * The rotated files of `log` (a name in `directory`): regular files with the kubelet's names; other files and links
 * are ignored. Throws the system's error. kubelet 1.36: filterUnusedLogs.
 */
export async function rotatedLogs(directory: string, log: string): Promise<RotatedLogs> {
  const found: RotatedLog[] = [];
  const unused: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const [, stamp, compressed, temporary] = suffixOf(entry.name, log) ?? [];
    if (stamp === undefined || !entry.isFile()) continue;
    if (temporary === undefined) found.push({ name: entry.name, stamp, isCompressed: compressed !== undefined });
    else unused.push(entry.name);
  }
  const compressed = new Set(found.filter(({ isCompressed }) => isCompressed).map(({ stamp }) => stamp));
  const inUse = found.filter(({ stamp, isCompressed }) => isCompressed || !compressed.has(stamp));
  unused.push(...found.filter((one) => !inUse.includes(one)).map(({ name }) => name));
  return { inUse: inUse.sort((a, b) => byText(a.stamp, b.stamp)), unused };
}
const suffixOf = (name: string, log: string): RegExpExecArray | null =>
  name.startsWith(`${log}.`) ? SUFFIX.exec(name.slice(log.length + 1)) : null;

/**
 * The name behind which the log of this moment goes: the kubelet's, but never before or at that of one that is there, which
 * a clock that was set back, or a second rotation in one second, would write over or take for older.
 */
export function nextStamp(now: Date, last: string | undefined): string {
  const own = stampOf(new Date(now.getTime() - now.getTimezoneOffset() * 60_000));
  if (last === undefined || own > last) return own;
  const [, year, month, day, hour, minute, second] = /^(....)(..)(..)-(..)(..)(..)$/.exec(last) ?? [];
  return stampOf(
    new Date(Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second) + 1)),
  );
}
/** `2026-01-01T00:00:00.000Z` without what separates. */
const stampOf = (time: Date): string => time.toISOString().replace(/\..*$/, "").replace(/[-:]/g, "").replace("T", "-");
