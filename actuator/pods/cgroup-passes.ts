import type { QuantityList } from "../../api/model/decision.ts";
import { containerResources } from "../lifecycle/config/container-resources.ts";
import { runPass } from "../loop.ts";
import type { LastLook } from "../plan/last-look.ts";
import type { Problem } from "../ports.ts";
import { type CgroupView, cgroupView } from "./cgroup-view.ts";
import { Identities } from "./identities.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import { OrphanProcesses } from "./orphan-processes.ts";
import { isPassDue, type LastPass, passKey } from "./pass-due.ts";
import { podsOfPass } from "./pass-pods.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

/** Keeps the cgroups of the node's pods as they are decided: on each change, and each minute. */
export class CgroupPasses {
  readonly #ports: ManagerPorts;
  readonly #settings: ManagerSettings;
  readonly #set: PodSet;
  readonly #versions = new Identities();
  readonly #orphans: OrphanProcesses;
  #last: LastPass | null = null;
  readonly #lastLook: { current: LastLook | null } = { current: null };
  #isEmptied = false;
  /** What pods may have of this node, as it was last decided; null: not yet. */
  allocatable: QuantityList | null = null;
  /** By uid: the form in which the last pass saw a pod. */
  #forms: ReadonlyMap<string, object> = new Map();
  /** Containers of which the runtime has not heard, with why. */
  readonly #untold = new Map<string, string>();
  /** The daemon before this one may have died between a container's cgroup and the runtime's record of it. */
  #isFirst = true;
  /** A pod as its cgroups are to be: while it is resized, its former form may stand for a while. */
  formOf: (known: KnownPod) => Readonly<Record<string, unknown>> = ({ record }) => record.pod;

  constructor(ports: ManagerPorts, settings: ManagerSettings, set: PodSet) {
    this.#ports = ports;
    this.#settings = settings;
    this.#set = set;
    this.#orphans = new OrphanProcesses(ports, settings);
  }

  /** What the last pass decided and did; null: none has yet. */
  get current(): CgroupView | null {
    return this.#last?.view ?? null;
  }

  /** What the pass met; null: none was due, and what the last one met stands. */
  async runIfDue(sequence: number): Promise<readonly Problem[] | null> {
    const living = this.#set.living();
    const atMs = this.#ports.clock.nowMs();
    const forms = new Map(living.map((known) => [known.uid, this.formOf(known)] as const));
    const key = passKey(living, ({ uid }) => this.#versions.of(forms.get(uid)));
    const filesVersion = this.#ports.files.version;
    const { intervalMs } = this.#settings;
    // without the runtime's word nobody knows which cgroups are in use
    const isDue = this.#isEmptied || isPassDue(this.#last, living, { atMs, key, filesVersion, intervalMs });
    if (this.#set.seen === null || !isDue) return null;
    this.#isEmptied = false;
    const report = await runPass(this.#loopPorts(living, forms, atMs), this.#passSettings(), sequence);
    const view = cgroupView(report);
    if (view !== null) this.#forms = forms;
    this.allocatable = report.allocatable?.allocatable ?? this.allocatable;
    this.#last = { atMs, key, filesVersion, view };
    this.#ports.onPass(report);
    const orphans = await this.#orphans.look(report.skipped);
    // what they ran in is empty now
    if (orphans.killed) this.#isEmptied = true;
    const untold = await this.#tellRuntime(view, living);
    return [...report.problems, ...report.notices, ...orphans.problems, ...untold];
  }

  /** The last pass saw this very form of the pod. */
  hasSeen(uid: string, form: object): boolean {
    return this.#forms.get(uid) === form;
  }

  /** Null: a pass has seen this very form of the pod, and it is in force everywhere; else why it is not, or "". */
  whyNotInForce(uid: string, form: object): string | null {
    if (!this.hasSeen(uid, form)) return "";
    const place = this.current?.pods.get(uid);
    if (place === undefined) return "";
    const untold = [...place.containers.keys()].flatMap((id) => this.#untold.get(id) ?? []);
    return [...place.faults, ...untold][0] ?? null;
  }

  #loopPorts(living: readonly KnownPod[], forms: ReadonlyMap<string, object>, atMs: number) {
    const { observeMachine, readConfiguration, client, hierarchy, journal, files, devices } = this.#ports;
    const pods = podsOfPass(this.#set.objects(living, atMs, forms));
    return {
      observeMachine,
      readConfiguration,
      client,
      hierarchy,
      journal,
      lastLook: this.#lastLook,
      readPods: async () => ({ pods, whole: true, problems: [], notices: [] }),
      readStateFiles: () => files.told(),
      ...(devices === undefined ? {} : { readDevices: () => devices.parts() }),
    };
  }
  #passSettings() {
    const { nodeName, cgroupMount, removeOrphans } = this.#settings;
    return { mode: "enforce", containers: "existing", nodeName, cgroupMount, removeOrphans } as const;
  }

  /**
   * So that the runtime's own record of a container agrees with its cgroup; while a pod is resized, of each of its own, and
   * once of each that has a CPU set.
   */
  async #tellRuntime(view: CgroupView | null, living: readonly KnownPod[]): Promise<readonly Problem[]> {
    if (view === null) return [];
    const values = new Map(view.rewritten.map((one) => [one.containerId, one.values] as const));
    for (const { uid, record } of living) {
      const place = view.pods.get(uid);
      const isResized = record.resize?.actuation !== undefined;
      for (const [id, own] of place?.byId ?? []) {
        const mayDiffer = this.#isFirst && own.cpusetCpus !== undefined;
        if (isResized || mayDiffer || this.#untold.has(id)) values.set(id, own);
      }
    }
    this.#isFirst = false;
    this.#untold.clear();
    const told = [...values].map(async ([containerId, own]) => {
      const updated = await this.#ports.runtime.updateContainer(containerId, containerResources(own, view.version));
      if (updated.ok) return [];
      const message = `${updated.error.call}: ${updated.error.message}`;
      this.#untold.set(containerId, message);
      return [{ from: "runtime" as const, message }];
    });
    return (await Promise.all(told)).flat();
  }
}
