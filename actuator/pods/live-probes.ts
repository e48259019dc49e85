import type { ProbeType } from "../../api/model/probe.ts";
import type { PodSays } from "../lifecycle/probe-results.ts";
import type { PodStatus } from "../lifecycle/status/status.ts";
import { Compilers } from "../probes/compilers.ts";
import type { ProbeManager } from "../probes/manager.ts";
import type { PodProbes } from "./pod-probes.ts";
import type { KnownPod } from "./pod-set.ts";
import { isProbed, type LastTold, probedPod } from "./probed-pods.ts";

export interface LiveProbesOptions {
  readonly manager: ProbeManager;
  /** The node's addresses, the preferred family first. */
  readonly hostIPs: readonly string[];
  /** By the daemon before this one. */
  readonly last: LastTold;
}

/** The probes of the pods that this daemon runs. */
export class LiveProbes implements PodProbes {
  readonly #options: LiveProbesOptions;
  readonly #compilers = new Compilers();
  readonly #versions = new Map<string, number>();
  /** By pod and container, as they were looked at last: of another instance nothing is known yet. */
  readonly #ids = new Map<string, ReadonlyMap<string, string | null>>();

  constructor(options: LiveProbesOptions) {
    this.#options = options;
  }

  resultOf = (containerId: string, type: ProbeType) => this.#options.manager.resultOf(containerId, type);
  versionOf = (podUid: string): number => this.#versions.get(podUid) ?? 0;

  saysOf(podUid: string): PodSays {
    const { manager } = this.#options;
    const isIt = (container: string, id: string): boolean => this.#ids.get(podUid)?.get(container) === id;
    return {
      isStarted: (container, id) => isIt(container, id) && manager.started(podUid, container),
      isReady: (container, id) => isIt(container, id) && manager.ready(podUid, container),
    };
  }

  look(pods: readonly KnownPod[], statusOf: (known: KnownPod) => PodStatus): void {
    const { manager, hostIPs, last } = this.#options;
    const probed = pods.filter(isProbed).map((known) => probedPod({ known, status: statusOf(known), hostIPs, last }));
    manager.look(probed);
    this.#compilers.look(manager.perSecond);
    const now = new Map(probed.map(({ uid, containers }) => [uid, new Map(containers.map((c) => [c.name, c.id]))]));
    for (const [uid, ids] of now) {
      const before = this.#ids.get(uid);
      if ([...ids].some(([name, id]) => before?.get(name) !== id)) this.changed(uid);
      this.#ids.set(uid, ids);
    }
    for (const uid of this.#ids.keys()) {
      if (now.has(uid)) continue;
      this.#ids.delete(uid);
      this.#versions.delete(uid);
    }
  }

  /** A result of one of its containers is another one. */
  changed(podUid: string): void {
    this.#versions.set(podUid, this.versionOf(podUid) + 1);
  }
}
