import type { ManagerPorts } from "./manager-ports.ts";

/**
 * Takes away directories of pods whose records are lost, and of which the runtime holds nothing. Records are lost only
 * between two daemons, so each looks once. kubelet 1.36: cleanupOrphanedPodDirs.
 */
export class LostDirectories {
  readonly #ports: Pick<ManagerPorts, "worker" | "onProblem">;
  #hasLooked = false;

  constructor(ports: Pick<ManagerPorts, "worker" | "onProblem">) {
    this.#ports = ports;
  }

  /** INVARIANT: asked once all pods that are asked for have records, or run. `known`: by uid. */
  look(known: readonly (ReadonlyMap<string, unknown> | null)[]): void {
    if (this.#hasLooked || known.includes(null)) return;
    this.#hasLooked = true;
    const uids = new Set(known.flatMap((pods) => [...(pods ?? new Map<string, unknown>()).keys()]));
    void this.#ports.worker.clear(uids).then((leftOvers) => {
      for (const { path, why } of leftOvers)
        this.#ports.onProblem({ from: "pods", message: `${path} of a pod that nobody knows stays: ${why}` });
    });
  }
}
