import type { ManagerPorts } from "./manager-ports.ts";

type ByUid = ReadonlyMap<string, unknown>;

/**
 * Takes away directories of pods whose records are lost, and of which the runtime holds nothing. Records are lost only
 * between two daemons, so each looks once, and again when what ran without a record is gone: its directory may have
 * stayed. kubelet 1.36: cleanupOrphanedPodDirs.
 */
export class LostDirectories {
  readonly #ports: Pick<ManagerPorts, "worker" | "onProblem">;
  #hasLooked = false;
  #strangers: readonly string[] = [];

  constructor(ports: Pick<ManagerPorts, "worker" | "onProblem">) {
    this.#ports = ports;
  }

  /** INVARIANT: asked once all pods that are asked for have records, or run. `known`: what the runtime holds, and records. */
  look(known: readonly (ByUid | null)[]): void {
    const [seen, records] = known;
    if (!seen || !records) return;
    const isKnown = (uid: string): boolean => seen.has(uid) || records.has(uid);
    const isDue = !this.#hasLooked || !this.#strangers.every(isKnown);
    this.#strangers = [...seen.keys()].filter((uid) => !records.has(uid));
    if (!isDue) return;
    this.#hasLooked = true;
    void this.#ports.worker.clear(new Set([...seen.keys(), ...records.keys()])).then((leftOvers) => {
      for (const { path, why } of leftOvers)
        this.#ports.onProblem({ from: "pods", message: `${path} of a pod that nobody knows stays: ${why}` });
    });
  }
}
