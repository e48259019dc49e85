import { lstatSync, realpathSync } from "node:fs";
import { lstat, readdir, rename, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import type { PodPlaces } from "../pod-clock.ts";
import type { Mounter } from "./mounter.ts";
import { isWithin, ownMountPlaces, volumePlaces } from "./places.ts";
import { isOfPod, MARK, NOT_OWN } from "./pod-mark.ts";

/** Something of a pod that could not be removed. */
export interface LeftOver {
  readonly path: string;
  readonly why: string;
}

/**
 * Removes a pod's directory: unmounts what this daemon mounted in it (memory-backed volumes, sub-paths), then removes all
 * files, never through a link or a mount that is still there. Returns what could not be removed, without the directories
 * above it. Empty: nothing is left.
 */
export const removePodDirectory = (places: PodPlaces, mounter: Mounter): Promise<readonly LeftOver[]> =>
  removeOf(places, mounter, ({ podDirectory }) => [podDirectory]);

/**
 * Removes only a pod's volumes, in the same way.
 * kubelet 1.36: emptyDir.TearDownAt, doCleanSubPaths.
 */
export const removePodVolumes = (places: PodPlaces, mounter: Mounter): Promise<readonly LeftOver[]> =>
  removeOf(places, mounter, volumePlaces);

async function removeOf(
  places: PodPlaces,
  mounter: Mounter,
  treesOf: (places: PodPlaces) => readonly string[],
): Promise<readonly LeftOver[]> {
  const { podDirectory } = places;
  const found = realDirectory(podDirectory);
  if (!found.ok) return [{ path: podDirectory, why: found.error }];
  if (found.value === null) return [];
  const { path, device } = found.value;
  if (!isOfPod(podDirectory)) return [{ path: podDirectory, why: NOT_OWN }];
  const real = { ...places, podDirectory: path };
  const leftOvers = await unmountOwn(real, mounter);
  const mounts = mounter.mounts();
  if (!mounts.ok) return [{ path: podDirectory, why: mounts.error }];
  const kept = new Set(mounts.value.map(({ point }) => point));
  for (const root of treesOf(real)) await removeTree(root, { root, device, kept, leftOvers });
  return leftOvers;
}

interface RealDirectory {
  readonly path: string;
  readonly device: number;
}
function realDirectory(path: string): Result<RealDirectory | null, string> {
  try {
    const stats = lstatSync(path);
    return stats.isDirectory() ? ok({ path: realpathSync(path), device: stats.dev }) : err("it is not a directory");
  } catch (error) {
    return codeOf(error) === "ENOENT" ? ok(null) : err(goErrorText(error));
  }
}

async function unmountOwn(places: PodPlaces, mounter: Mounter): Promise<LeftOver[]> {
  const mounts = mounter.mounts();
  if (!mounts.ok) return [{ path: places.podDirectory, why: mounts.error }];
  const leftOvers: LeftOver[] = [];
  const own = ownMountPlaces(places);
  for (const { point } of mounts.value) {
    if (!own.some((place) => isOwnMount(point, place))) continue;
    const unmounted = await mounter.unmount(point);
    if (!unmounted.ok) leftOvers.push({ path: point, why: unmounted.error });
  }
  return leftOvers;
}
/** A volume is mounted directly in `place`, a sub-path two levels deeper; a container's own mounts lie within a volume. */
function isOwnMount(point: string, place: string): boolean {
  if (!isWithin(point, place)) return false;
  const depth = point.slice(place.length + 1).split("/").length;
  return place.endsWith("/volume-subpaths") ? depth === 3 : depth === 1;
}

interface Removal {
  readonly root: string;
  readonly device: number;
  /** Mounts that are still there. */
  readonly kept: ReadonlySet<string>;
  readonly leftOvers: LeftOver[];
}

/** The kernel accepts paths of up to 4096 bytes, a container may nest directories deeper: those are moved up first. */
const LONGEST_PATH = 3000;

/** Removes a tree. True: it is gone. */
async function removeTree(path: string, removal: Removal): Promise<boolean> {
  const { kept, leftOvers } = removal;
  if (kept.has(path)) {
    if (!leftOvers.some((one) => one.path === path)) leftOvers.push({ path, why: "something is mounted there" });
    return false;
  }
  try {
    const stats = await lstat(path);
    if (stats.dev !== removal.device) {
      leftOvers.push({ path, why: "it is on another file system" });
      return false;
    }
    if (!stats.isDirectory()) {
      await unlink(path);
      return true;
    }
    if (path.length > LONGEST_PATH && ![...kept].some((point) => isWithin(point, path))) {
      const nearer = join(removal.root, `.deep-${stats.ino}`);
      await rename(path, nearer);
      return removeTree(nearer, removal);
    }
    let isEmpty = true;
    const names = await readdir(path);
    for (const name of names.filter((one) => one !== MARK || path !== removal.root))
      isEmpty = (await removeTree(join(path, name), removal)) && isEmpty;
    // the mark goes last, so that what a crash leaves is still known as the daemon's own
    if (isEmpty && path === removal.root && names.includes(MARK)) await removeTree(join(path, MARK), removal);
    if (isEmpty) await rmdir(path);
    return isEmpty;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true;
    leftOvers.push({ path, why: goErrorText(error) });
    return false;
  }
}
