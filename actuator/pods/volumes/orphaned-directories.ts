import type { Problem } from "../../core/ports.ts";
import type { PodClock } from "../ports.ts";
import type { OrphanedDirectoryResult } from "./orphaned-directory.ts";

interface Ports {
  readonly clock: PodClock;
  readonly worker: {
    clear(known: ReadonlySet<string>, recorded: ReadonlySet<string>): Promise<OrphanedDirectoryResult>;
  };
  readonly onProblem: (problem: Problem) => void;
}
type ByUid = ReadonlyMap<string, unknown>;
interface Known {
  /** The runtime's pods under the daemon's name; null: it was not heard yet. */
  readonly runtimePods: ByUid | null;
  /** The runtime's pods under any name. */
  readonly held: ByUid | null;
  readonly records: ByUid;
}
const AGAIN_MS = 60_000;
const MAX_NAMED = 3;

/**
 * Takes away directories of pods whose records are lost, and of which the runtime holds nothing. Records are lost only
 * between two daemons, so each looks once, again when what ran without a record is gone (its directory may have stayed), and
 * each minute while there is something to tell. kubelet 1.36: cleanupOrphanedPodDirs.
 */
export class OrphanedDirectories {
  readonly #ports: Ports;
  #lookedAtMs: number | null = null;
  #unknownPods: readonly string[] = [];
  #standing: readonly Problem[] = [];

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * INVARIANT: asked once all pods that are asked for have records, or run. Answers what the last look met. What is
   * removed is told at once.
   */
  sweep({ runtimePods, held, records }: Known): readonly Problem[] {
    if (runtimePods === null || held === null) return this.#standing;
    const isKnown = (uid: string): boolean => runtimePods.has(uid) || records.has(uid);
    const nowMs = this.#ports.clock.monotonicMs();
    const isAgain = this.#standing.length > 0 && nowMs - (this.#lookedAtMs ?? 0) >= AGAIN_MS;
    const isDue = this.#lookedAtMs === null || isAgain || !this.#unknownPods.every(isKnown);
    this.#unknownPods = [...runtimePods.keys()].filter((uid) => !records.has(uid));
    if (!isDue) return this.#standing;
    this.#lookedAtMs = nowMs;
    const recorded = new Set(records.keys());
    void this.#ports.worker
      .clear(new Set([...held.keys(), ...runtimePods.keys(), ...recorded]), recorded)
      .then((found) => {
        this.#standing = problemsOf(found);
        for (const path of found.removed)
          this.#ports.onProblem({ from: "pods", message: `removed ${path}, left of a pod that nobody knows` });
      });
    return this.#standing;
  }
}

function problemsOf({ stays, foreign }: OrphanedDirectoryResult): readonly Problem[] {
  const left = stays.map(({ path, why }) => `${path} of a pod that nobody knows stays: ${why}`);
  const more = foreign.length > MAX_NAMED ? ` and ${foreign.length - MAX_NAMED} more` : "";
  const alien = `${foreign.slice(0, MAX_NAMED).join(", ")}${more} in podsDirectory: not made by this daemon, so never touched: podsDirectory is to be one of its own`;
  return [...left, ...(foreign.length > 0 ? [alien] : [])].map((message) => ({ from: "pods", message }));
}
