import { readdir } from "node:fs/promises";
import { byText } from "../../../api/base/order.ts";

/** A rotated log of a container. */
export interface RotatedLog {
  readonly name: string;
  /** `20260101-000000`: the local time of the rotation on that node; later stamps sort after earlier ones. */
  readonly stamp: string;
  readonly isCompressed: boolean;
}
/** The files beside a container's log that begin with its name. */
interface RotatedLogs {
  /** The rotated logs, oldest first, each once. */
  readonly inUse: readonly RotatedLog[];
  /** Names of files left by an interrupted rotation: temporary files, and logs that have been compressed. */
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
 * The stamp of the next rotated log: the kubelet's, but always after that of every existing one. If the clock was set back, or
 * for a second rotation in one second, the kubelet's own would overwrite a log or sort wrongly.
 */
export function nextStamp(now: Date, last: string | undefined): string {
  const own = stampOf(new Date(now.getTime() - now.getTimezoneOffset() * 60_000));
  if (last === undefined || own > last) return own;
  const [, year, month, day, hour, minute, second] = /^(....)(..)(..)-(..)(..)(..)$/.exec(last) ?? [];
  return stampOf(
    new Date(Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second) + 1)),
  );
}
/** `2026-01-01T00:00:00.000Z` without the fraction and separators. */
const stampOf = (time: Date): string => time.toISOString().replace(/\..*$/, "").replace(/[-:]/g, "").replace("T", "-");
