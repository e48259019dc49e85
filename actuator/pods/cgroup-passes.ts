import type { QuantityList } from "../../api/model/decision.ts";
import { containerResources } from "../lifecycle/config/container-resources.ts";
import { runPass } from "../loop.ts";
import type { Problem } from "../ports.ts";
import { type CgroupView, cgroupView } from "./cgroup-view.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { isPassDue, type LastPass, passKey } from "./pass-due.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

/** Keeps the cgroups of the node's pods as they are decided: on each change, and each minute. */
export class CgroupPasses {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #versions = new WeakMap<object, number>();
  #nextVersion = 1;
  #last: LastPass | null = null;
  /** What pods may have of this node, as it was last decided; null: not yet. */
  allocatable: QuantityList | null = null;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
  }

  /** What the last pass decided and did; null: none has yet. */
  get current(): CgroupView | null {
    return this.#last?.view ?? null;
  }

  async runIfDue(sequence: number): Promise<readonly Problem[]> {
    const living = this.#set.living();
    const atMs = this.#ports.clock.nowMs();
    const key = passKey(living, (pod) => this.#versionOf(pod));
    const filesVersion = this.#ports.files.version;
    const { intervalMs } = this.#settings;
    // without the runtime's word nobody knows which cgroups are in use
    if (this.#set.seen === null || !isPassDue(this.#last, living, { atMs, key, filesVersion, intervalMs })) return [];
    const report = await runPass(this.#loopPorts(living, atMs), this.#passSettings(), sequence);
    const view = cgroupView(report);
    this.allocatable = report.allocatable?.allocatable ?? this.allocatable;
    this.#last = { atMs, key, filesVersion, view };
    this.#ports.onPass(report);
    return [...report.problems, ...(await this.#tellRuntime(view))];
  }

  #loopPorts(living: readonly KnownPod[], atMs: number) {
    const { observeMachine, readConfiguration, client, hierarchy, journal, files } = this.#ports;
    const pods = this.#set.objects(living, atMs);
    return {
      observeMachine,
      readConfiguration,
      client,
      hierarchy,
      journal,
      readPods: async () => ({ pods, whole: true, problems: [], notices: [] }),
      readStateFiles: () => files.read(),
    };
  }
  #passSettings() {
    const { nodeName, cgroupMount, removeOrphans } = this.#settings;
    return { mode: "enforce", containers: "existing", nodeName, cgroupMount, removeOrphans } as const;
  }

  /** So that the runtime's own record of a container agrees with its cgroup. */
  async #tellRuntime(view: CgroupView | null): Promise<readonly Problem[]> {
    const told = (view?.rewritten ?? []).map(async ({ containerId, values }) => {
      const resources = containerResources(values, view?.version ?? 1);
      const updated = await this.#ports.runtime.updateContainer(containerId, resources);
      return updated.ok
        ? []
        : [{ from: "runtime" as const, message: `${updated.error.call}: ${updated.error.message}` }];
    });
    return (await Promise.all(told)).flat();
  }

  #versionOf(pod: object): number {
    const known = this.#versions.get(pod);
    if (known !== undefined) return known;
    this.#versions.set(pod, this.#nextVersion);
    return this.#nextVersion++;
  }
}
