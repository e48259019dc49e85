import { join } from "node:path";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { PodPlaces } from "../ports.ts";

/** Directories that hold those of all pods. */
export interface PodRoots {
  readonly podsDirectory: string;
  readonly podLogsDirectory: string;
}
export interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The kubelet's name for the directory of a plugin: its slash is escaped. */
const EMPTY_DIR = "kubernetes.io~empty-dir";
const VOLUME_SUBPATHS = "volume-subpaths";

/**
 * `<podsDirectory>/<uid>` and `<podLogsDirectory>/<namespace>_<name>_<uid>`. Error: a sentence, when one of them is no
 * single part of a path; then nothing below the root may be touched for that pod.
 */
export function placesOf(roots: PodRoots, { namespace, name, uid }: PodIdentity): Result<PodPlaces, string> {
  const podDirectory = below(roots.podsDirectory, uid);
  if (!podDirectory.ok) return podDirectory;
  const logDirectory = below(roots.podLogsDirectory, `${namespace}_${name}_${uid}`);
  if (!logDirectory.ok) return logDirectory;
  return ok({ podDirectory: podDirectory.value, logDirectory: logDirectory.value });
}

/** `<pod>/volumes/kubernetes.io~empty-dir/<volume>` */
export const emptyDirAt = ({ podDirectory }: PodPlaces, volume: string): Result<string, string> =>
  below(join(podDirectory, "volumes", EMPTY_DIR), volume);

/** `<pod>/volume-subpaths/<volume>/<container>/<index of the mount>` */
export function subPathAt(
  { podDirectory }: PodPlaces,
  volume: string,
  container: string,
  index: number,
): Result<string, string> {
  return below(join(podDirectory, VOLUME_SUBPATHS), volume, container, String(index));
}

/** `<pod>/containers/<name>` */
export const containerAt = ({ podDirectory }: PodPlaces, container: string): Result<string, string> =>
  below(join(podDirectory, "containers"), container);

/** `<pod>/etc-hosts` */
export const etcHostsAt = ({ podDirectory }: PodPlaces): string => join(podDirectory, "etc-hosts");

/** `<log directory>/<container>` */
export const containerLogsAt = ({ logDirectory }: PodPlaces, container: string): Result<string, string> =>
  below(logDirectory, container);

/** Directories in which this daemon itself mounts things of a pod. */
export const ownMountPlaces = ({ podDirectory }: PodPlaces): readonly string[] => [
  join(podDirectory, "volumes", EMPTY_DIR),
  join(podDirectory, VOLUME_SUBPATHS),
];

/** Lists the directories of a pod's volumes, with what is mounted for them. */
export const volumePlaces = ({ podDirectory }: PodPlaces): readonly string[] => [
  join(podDirectory, "volumes"),
  join(podDirectory, VOLUME_SUBPATHS),
];

/** INVARIANT: what comes out lies below `root`; each part is the name of one entry. */
export function below(root: string, ...parts: readonly string[]): Result<string, string> {
  const wrong = parts.find((part) => !isEntryName(part));
  return wrong === undefined
    ? ok(join(root, ...parts))
    : err(`\`${wrong}\` below ${root}: it is not the name of one entry`);
}
const isEntryName = (part: string): boolean => part !== "" && part !== "." && part !== ".." && !/[/\0]/.test(part);

/** Both are clean absolute paths. */
export const isWithin = (path: string, root: string): boolean =>
  path === root || path.startsWith(root === "/" ? "/" : `${root}/`);
