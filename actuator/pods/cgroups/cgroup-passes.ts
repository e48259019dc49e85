import type { Profile } from "../../../api/profiles/profile.ts";
import type { Journal } from "../../apply/journal.ts";
import type { PodRuntime } from "../../containerd/cri.ts";
import type { Problem } from "../../core/interfaces.ts";
import { containerResources } from "../../lifecycle/config/container-config.ts";
import { type LoopDeps, type PassReport, runPass } from "../../pass/loop.ts";
import type { LastPassCgroups } from "../../plan/state.ts";
import type { ManagerFiles } from "../devices/manager-files.ts";
import type { NodeDevices } from "../devices/port.ts";
import { type KnownPod, ObjectNumbers, type PodSet } from "../records/pod-set.ts";
import { type CgroupView, type CurrentCgroups, cgroupView } from "./cgroup-view.ts";
import { type OrphanProcessDeps, OrphanProcesses } from "./orphan-processes.ts";

/** The time in which started or ended containers are collected into one pass. */
const SOON_MS = 2_000;
/** A value that could not be written is tried again after this time. */
const RETRY_MS = 10_000;

export interface LastPass {
  readonly atMs: number;
  readonly key: string;
  readonly filesVersion: number;
  readonly view: CgroupView | null;
}

/** The state that the cgroups depend on: the pods with their resources, and the running containers. */
export function passKey(living: readonly KnownPod[], versionOf: (known: KnownPod) => number): string {
  const parts = living.map((known) => {
    const running = known.runtimePod?.containers.filter(({ state }) => state === "running").map(({ id }) => id) ?? [];
    return `${known.uid}#${versionOf(known)}:${running.join(",")}`;
  });
  return parts.sort().join(" ");
}

/** Whether a pass is due: at once for waiting pods, otherwise each `intervalMs`. */
export function isPassDue(
  last: LastPass | null,
  living: readonly KnownPod[],
  now: { readonly atMs: number; readonly key: string; readonly filesVersion: number; readonly intervalMs: number },
): boolean {
  if (last === null || now.filesVersion !== last.filesVersion) return true;
  const age = now.atMs - last.atMs;
  if (age >= now.intervalMs || age < 0) return true;
  const { view } = last;
  if (view === null) return age >= RETRY_MS;
  if (living.some(({ uid, record }) => record.state === "active" && !view.pods.has(uid))) return true;
  if (now.key !== last.key) return age >= SOON_MS;
  const isFaulty = view.cpusetFault !== null || [...view.pods.values()].some(({ faults }) => faults.length > 0);
  // the runtime may not have the new values
  const isResized = living.some(({ record }) => record.resize?.actuation !== undefined);
  return (isFaulty || isResized) && age >= RETRY_MS;
}

interface Deps extends Pick<LoopDeps, "observeMachine" | "readConfiguration" | "client">, OrphanProcessDeps {
  readonly journal: Journal;
  readonly files: ManagerFiles;
  readonly devices?: Pick<NodeDevices, "snapshot">;
  /** Updated by each pass. */
  readonly cgroups: CurrentCgroups;
  readonly runtime: Pick<PodRuntime, "pods" | "updateContainer">;
  readonly onPass: (report: PassReport) => void;
}
interface Settings {
  readonly profile: Profile;
  readonly nodeName: string;
  readonly cgroupMount: string;
  readonly cgroupRoot: string;
  readonly removeOrphans: boolean;
  readonly intervalMs: number;
}

/** Keeps the cgroups of the node's pods as decided: after each change, and each minute. */
export class CgroupPasses {
  readonly #deps: Deps;
  readonly #settings: Settings;
  readonly #set: PodSet;
  readonly #versions = new ObjectNumbers();
  readonly #orphans: OrphanProcesses;
  #last: LastPass | null = null;
  readonly #lastPassCgroups: { current: LastPassCgroups | null } = { current: null };
  #isEmptied = false;
  /** The form in which the last pass saw each pod, by uid. */
  #forms: ReadonlyMap<string, object> = new Map();
  /** Containers whose values the runtime did not receive, with the reason. */
  readonly #unreported = new Map<string, string>();
  /** The previous daemon may have ended between writing a container's cgroup and telling the runtime. */
  #isFirst = true;

  constructor(deps: Deps, settings: Settings, set: PodSet) {
    this.#deps = deps;
    this.#settings = settings;
    this.#set = set;
    this.#orphans = new OrphanProcesses(deps, settings);
  }

  /** The decision and the results of the last pass; null: there was none. */
  get current(): CgroupView | null {
    return this.#deps.cgroups.view;
  }

  /** `formOf`: the form of a pod for its cgroups. Returns the pass's problems; null: no pass was due, and the last one's problems still apply. */
  async runIfDue(
    sequence: number,
    formOf: (known: KnownPod) => Readonly<Record<string, unknown>>,
  ): Promise<readonly Problem[] | null> {
    const living = this.#set.living();
    const atMs = this.#deps.clock.nowMs();
    const forms = new Map(living.map((known) => [known.uid, formOf(known)] as const));
    const key = passKey(living, ({ uid }) => this.#versions.of(forms.get(uid)));
    const filesVersion = this.#deps.files.version;
    const { intervalMs } = this.#settings;
    // without the runtime's lists it is not known which cgroups are in use
    const isDue = this.#isEmptied || isPassDue(this.#last, living, { atMs, key, filesVersion, intervalMs });
    if (this.#set.runtimePods === null || !isDue) return null;
    this.#isEmptied = false;
    const report = await runPass(this.#loopPorts(living, forms, atMs), this.#passSettings(), sequence);
    const view = cgroupView(report);
    if (view !== null) this.#forms = forms;
    const { cgroups } = this.#deps;
    cgroups.allocatable = report.allocatable?.allocatable ?? cgroups.allocatable;
    cgroups.view = view;
    this.#last = { atMs, key, filesVersion, view };
    this.#deps.onPass(report);
    const orphans = await this.#orphans.reap(report.skipped);
    // the processes' cgroups are empty now
    if (orphans.killed) this.#isEmptied = true;
    const unreported = await this.#updateRuntime(view, living);
    return [...report.problems, ...report.notices, ...orphans.problems, ...unreported];
  }

  /** True if the last pass used exactly this form of the pod. */
  hasSeen(uid: string, form: object): boolean {
    return this.#forms.get(uid) === form;
  }

  /** Why the pod's form is not in force, or "" while a pass is missing; null: a pass has applied exactly this form everywhere. */
  whyNotInForce(uid: string, form: object): string | null {
    if (!this.hasSeen(uid, form)) return "";
    const place = this.current?.pods.get(uid);
    if (place === undefined) return "";
    const unreported = [...place.containers.keys()].flatMap((id) => this.#unreported.get(id) ?? []);
    return [...place.faults, ...unreported][0] ?? null;
  }

  #loopPorts(living: readonly KnownPod[], forms: ReadonlyMap<string, object>, atMs: number) {
    const { observeMachine, readConfiguration, client, hierarchy, journal, files, devices } = this.#deps;
    const pods = podsOfPass(this.#set.objects(living, atMs, forms));
    return {
      observeMachine,
      readConfiguration,
      client,
      hierarchy,
      journal,
      lastPassCgroups: this.#lastPassCgroups,
      readPods: async () => ({ pods, whole: true, problems: [], notices: [] }),
      readStateFiles: () => files.redacted(),
      ...(devices === undefined ? {} : { readDevices: () => devices.snapshot() }),
    };
  }
  #passSettings() {
    const { nodeName, cgroupMount, removeOrphans, profile } = this.#settings;
    const kubeletVersion = profile.version;
    return { mode: "enforce", containers: "existing", nodeName, cgroupMount, removeOrphans, kubeletVersion } as const;
  }

  /**
   * Sends containers' values to the runtime, so that its record agrees with the cgroups: all of a pod's containers
   * while it is resized, and once those with a CPU set.
   */
  async #updateRuntime(view: CgroupView | null, living: readonly KnownPod[]): Promise<readonly Problem[]> {
    if (view === null) return [];
    const values = new Map(view.rewritten.map((one) => [one.containerId, one.values] as const));
    for (const { uid, record } of living) {
      const place = view.pods.get(uid);
      const isResized = record.resize?.actuation !== undefined;
      for (const [id, own] of place?.byId ?? []) {
        const mayDiffer = this.#isFirst && own.cpusetCpus !== undefined;
        if (isResized || mayDiffer || this.#unreported.has(id)) values.set(id, own);
      }
    }
    this.#isFirst = false;
    this.#unreported.clear();
    const updates = [...values].map(async ([containerId, own]) => {
      const updated = await this.#deps.runtime.updateContainer(containerId, containerResources(own, view.version));
      if (updated.ok) return [];
      const message = `${updated.error.call}: ${updated.error.message}`;
      this.#unreported.set(containerId, message);
      return [{ from: "runtime" as const, message }];
    });
    return (await Promise.all(updates)).flat();
  }
}

interface StatusOfContainer {
  readonly state?: { readonly terminated?: unknown };
}
interface PodWithStatus {
  readonly status: {
    readonly containerStatuses?: readonly StatusOfContainer[];
    readonly initContainerStatuses?: readonly StatusOfContainer[];
  };
}

/**
 * Pods for a cgroup pass, without ended containers' states: a decision has no values for an ended container, and it
 * may restart at any moment.
 */
export const podsOfPass = (pods: readonly unknown[]): readonly unknown[] =>
  pods.map((pod) => {
    const { status } = pod as PodWithStatus;
    const { containerStatuses, initContainerStatuses } = status;
    return {
      ...(pod as object),
      status: {
        ...status,
        ...(containerStatuses !== undefined && { containerStatuses: containerStatuses.filter(hasNotEnded) }),
        ...(initContainerStatuses !== undefined && {
          initContainerStatuses: initContainerStatuses.filter(hasNotEnded),
        }),
      },
    };
  });

const hasNotEnded = ({ state }: StatusOfContainer): boolean =>
  state?.terminated === undefined || state.terminated === null;
