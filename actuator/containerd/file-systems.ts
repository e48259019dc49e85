import { type BigIntStats, statfsSync, statSync } from "node:fs";
import { type FileSystem, fileSystemOf } from "../machine/facts.ts";
import type { Missing } from "../machine/files.ts";
import type { RuntimeLists } from "./cri.ts";

/** stats/v1alpha1 FsStats: sizes from the kernel; `used` is the runtime's own count, or else the kernel's. */
interface FileSystemStats extends FileSystem {
  /** RFC 3339 */
  readonly time: string;
}
interface MountPoint {
  readonly mountpoint: string;
  readonly usedBytes?: number;
  readonly inodesUsed?: number;
}
/** The mount points of images and containers' layers: the first of each list, which is what the kubelet uses. */
interface MountPoints {
  readonly image: MountPoint | undefined;
  /** The mount point of containers; absent: that of the images. */
  readonly container: MountPoint | undefined;
}
export interface ImageFileSystems {
  readonly imageFs: FileSystemStats | undefined;
  readonly containerFs: FileSystemStats | undefined;
  /** The layout; undefined: one of the three places could not be read. */
  readonly fileSystems: "one" | "dedicated" | "split" | undefined;
  readonly missing: readonly Missing[];
}

/** Mount points, by the `runtime` of a NodeSnapshot. */
export function mountPointsOf(lists: RuntimeLists): MountPoints {
  const { imageFilesystems = [], containerFilesystems = [] } = (lists["imageFilesystems"] ?? {}) as {
    readonly imageFilesystems?: readonly Usage[];
    readonly containerFilesystems?: readonly Usage[];
  };
  const image = imageFilesystems[0];
  const container = containerFilesystems[0];
  return { image: image && mountPointOf(image), container: container && mountPointOf(container) };
}
interface Usage {
  readonly fsId?: { readonly mountpoint: string };
  readonly usedBytes?: { readonly value: string };
  readonly inodesUsed?: { readonly value: string };
}
const mountPointOf = ({ fsId, usedBytes, inodesUsed }: Usage): MountPoint | undefined =>
  fsId && {
    mountpoint: fsId.mountpoint,
    ...(usedBytes && { usedBytes: Number(usedBytes.value) }),
    ...(inodesUsed && { inodesUsed: Number(inodesUsed.value) }),
  };

/**
 * `stats.node.runtime` and `stats.node.fileSystems`: measures the file systems of images and containers, and compares
 * their devices with the one of the kubelet's directory (`/` before that exists). Reads only.
 */
export function observeImageFileSystems(
  { image, container = image }: MountPoints,
  nodeDirectory: string,
  now: Date = new Date(),
): ImageFileSystems {
  const missing: Missing[] = [];
  const time = now.toISOString();
  const measured = (place: MountPoint | undefined): FileSystemStats | undefined => {
    const stat = place && attempt(place.mountpoint, missing, (path) => statfsSync(path, { bigint: true }));
    if (place === undefined || stat === undefined) return undefined;
    const { mountpoint: _, ...used } = place;
    return { time, ...fileSystemOf(stat), ...used };
  };
  const deviceOf = (place: MountPoint | undefined): bigint | undefined =>
    place && attempt(place.mountpoint, missing, (path) => statSync(path, { bigint: true }) as BigIntStats)?.dev;
  return {
    imageFs: measured(image),
    containerFs: measured(container),
    fileSystems: arrangement(deviceOf(image), deviceOf(container), nodeDevice(nodeDirectory, missing)),
    missing,
  };
}

function nodeDevice(directory: string, missing: Missing[]): bigint | undefined {
  const device = (path: string): bigint => statSync(path, { bigint: true }).dev;
  try {
    return device(directory);
  } catch {
    return attempt("/", missing, device);
  }
}

function arrangement(image: bigint | undefined, container: bigint | undefined, node: bigint | undefined) {
  if (image === undefined || container === undefined || node === undefined) return undefined;
  if (image !== container) return "split";
  return image === node ? "one" : "dedicated";
}

function attempt<T>(path: string, missing: Missing[], read: (path: string) => T): T | undefined {
  try {
    return read(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    if (!missing.some((m) => m.path === path)) missing.push({ path, why: `not readable (${code})` });
    return undefined;
  }
}
