import { readdirSync } from "node:fs";
import { readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { byText } from "../../../api/base/order.ts";
import { removePodLogs } from "../../containerd/logs.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { PodClock, PodPlaces } from "../pod-clock.ts";
import { type LeftOver, removePodDirectory } from "./clean-up.ts";
import type { Mounter } from "./mounter.ts";
import { isOfPod, isUnfinished, MARK, makeMarked, markIn } from "./pod-mark.ts";

interface Deps {
  readonly clock: PodClock;
  readonly worker: {
    clear(known: ReadonlySet<string>, recorded: ReadonlySet<string>): Promise<OrphanedDirectoryResult>;
  };
  readonly onProblem: (problem: Problem) => void;
}
type ByUid = ReadonlyMap<string, unknown>;
interface KnownPods {
  /** The runtime's pods under the daemon's name; null: the runtime has not answered yet. */
  readonly runtimePods: ByUid | null;
  /** The runtime's pods under any name. */
  readonly held: ByUid | null;
  readonly records: ByUid;
}
const AGAIN_MS = 60_000;
const MAX_NAMED = 3;

/**
 * Removes directories of pods without records of which the runtime has nothing. Records are lost only while no daemon runs,
 * so each daemon looks once, again when a pod that ran without a record is gone (its directory may remain), and each minute
 * while there are problems to report. kubelet 1.36: cleanupOrphanedPodDirs.
 */
export class OrphanedDirectories {
  readonly #deps: Deps;
  #readAtMs: number | null = null;
  #unknownPods: readonly string[] = [];
  #standing: readonly Problem[] = [];

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Returns the problems of the last look; removals are reported at once.
   * INVARIANT: called once every desired pod has a record, or runs.
   */
  sweep({ runtimePods, held, records }: KnownPods): readonly Problem[] {
    if (runtimePods === null || held === null) return this.#standing;
    const isKnown = (uid: string): boolean => runtimePods.has(uid) || records.has(uid);
    const nowMs = this.#deps.clock.monotonicMs();
    const isAgain = this.#standing.length > 0 && nowMs - (this.#readAtMs ?? 0) >= AGAIN_MS;
    const isDue = this.#readAtMs === null || isAgain || !this.#unknownPods.every(isKnown);
    this.#unknownPods = [...runtimePods.keys()].filter((uid) => !records.has(uid));
    if (!isDue) return this.#standing;
    this.#readAtMs = nowMs;
    const recorded = new Set(records.keys());
    void this.#deps.worker
      .clear(new Set([...held.keys(), ...runtimePods.keys(), ...recorded]), recorded)
      .then((found) => {
        this.#standing = problemsOf(found);
        for (const path of found.removed)
          this.#deps.onProblem({ from: "pods", message: `removed ${path}, left by an unknown pod` });
      });
    return this.#standing;
  }
}

function problemsOf({ stays, foreign }: OrphanedDirectoryResult): readonly Problem[] {
  const left = stays.map(({ path, why }) => `${path} of an unknown pod stays: ${why}`);
  const more = foreign.length > MAX_NAMED ? ` and ${foreign.length - MAX_NAMED} more` : "";
  const alien = `${foreign.slice(0, MAX_NAMED).join(", ")}${more} in podsDirectory: not made by this daemon, so never touched: podsDirectory is to be one of its own`;
  return [...left, ...(foreign.length > 0 ? [alien] : [])].map((message) => ({ from: "pods", message }));
}

interface OrphanedDirectoryRequest {
  readonly podsDirectory: string;
  readonly podLogsDirectory: string;
  /** Label OWNER. */
  readonly owner: string;
  /** Uids of pods that the runtime has something of, whoever made it, and of pods with records. */
  readonly known: ReadonlySet<string>;
  /** The known pods with a record. */
  readonly recorded: ReadonlySet<string>;
  /** Absent: logs are not linked. */
  readonly logLinks?: { prune(staying: ReadonlyMap<string, readonly never[]>): void } | undefined;
}
export interface OrphanedDirectoryResult {
  /** Paths that are gone. */
  readonly removed: readonly string[];
  /** The daemon's own paths that stay. */
  readonly stays: readonly LeftOver[];
  /** Somebody else's paths, which are never touched. */
  readonly foreign: readonly string[];
}

/**
 * Looks through the directories of pods. Removes those that this daemon made for pods that are not known, unless a volume
 * holds something. Marks the directory of a recorded pod if it has no mark. kubelet 1.36: cleanupOrphanedPodDirs.
 */
export async function sweepOrphanedDirectory(
  asked: OrphanedDirectoryRequest,
  mounter: Mounter,
): Promise<OrphanedDirectoryResult> {
  const { podsDirectory, owner, known, recorded } = asked;
  const [removed, stays, foreign]: [string[], LeftOver[], string[]] = [[], [], []];
  for (const { path, name, isDirectory } of entriesOf(podsDirectory)) {
    if (known.has(name)) {
      // versions before this one made no marks
      if (isDirectory && recorded.has(name) && markIn(path) === null && isOfPod(path)) makeMarked(path, owner);
      continue;
    }
    const isUnmade = isDirectory && isUnfinished(name);
    if (!isUnmade && !(isDirectory && markIn(path)?.owner === owner)) foreign.push(path);
    else {
      const left = isUnmade
        ? await removeUnfinished(path)
        : await removeOrphanedDirectory(path, mounter, () => removeLogsOf(name, asked));
      stays.push(...left);
      if (left.length === 0) removed.push(path);
    }
  }
  return { removed, stays, foreign };
}

/** Lists a directory without `lost+found`, which belongs to the file system. */
function entriesOf(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter(({ name }) => name !== "lost+found")
      .map((entry) => ({ name: entry.name, path: join(directory, entry.name), isDirectory: entry.isDirectory() }))
      .sort((a, b) => byText(a.name, b.name));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/**
 * Removes the directory of a pod without a record completely, or not at all if a volume holds something. `first`: removed
 * before it, so that after a crash the directory is found again.
 */
export async function removeOrphanedDirectory(
  podDirectory: string,
  mounter: Mounter,
  first: () => readonly LeftOver[] = () => [],
): Promise<readonly LeftOver[]> {
  const full = await fullVolumes(podDirectory);
  if (full.length > 0) return full.map((path) => ({ path, why: FULL }));
  const left = first();
  if (left.length > 0) return left;
  const places: PodPlaces = { podDirectory, logDirectory: "" };
  return removePodDirectory(places, mounter);
}
const FULL = "it holds data, and nothing is recorded of its pod: remove it by hand if it may go";

/** Removes the log directories of a pod, found by its uid. kubelet 1.36: evictPodLogsDirectories. */
function removeLogsOf(uid: string, { podLogsDirectory, logLinks }: OrphanedDirectoryRequest): readonly LeftOver[] {
  const names = entriesOf(podLogsDirectory).map(({ name }) => name);
  return names.flatMap((name) => {
    if (!/^[^_]+_[^_]+_/.test(name) || name.split("_").slice(2).join("_") !== uid) return [];
    logLinks?.prune(new Map([[join(podLogsDirectory, name), []]]));
    const removed = removePodLogs(podLogsDirectory, name);
    return removed.ok ? [] : [{ path: join(podLogsDirectory, name), why: removed.error }];
  });
}

/** Lists the entries of `volumes/PLUGIN/` except empty directories. */
async function fullVolumes(podDirectory: string): Promise<readonly string[]> {
  const full: string[] = [];
  const volumes = join(podDirectory, "volumes");
  for (const plugin of await namesIn(volumes)) {
    for (const volume of await namesIn(join(volumes, plugin))) {
      const path = join(volumes, plugin, volume);
      if ((await namesIn(path)).length > 0) full.push(path);
    }
  }
  return full;
}
/** Lists the names in a directory; for a path that is no directory, a single placeholder. */
async function namesIn(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    return codeOf(error) === "ENOENT" ? [] : ["."];
  }
}

/** Removes an unfinished directory with its mark file, and no other file. */
async function removeUnfinished(path: string): Promise<readonly LeftOver[]> {
  try {
    for (const name of await readdir(path)) if (name === MARK || name === `${MARK}.new`) await unlink(join(path, name));
    await rmdir(path);
    return [];
  } catch (error) {
    return [{ path, why: goErrorText(error) }];
  }
}
