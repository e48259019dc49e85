import { err, ok, type Result } from "../../../api/base/result.ts";
import type { AllocatableDecision, QuantityList } from "../../../api/model/allocatable.ts";
import { type ConditionState, PRESSURE_CONDITIONS } from "../../../api/model/eviction.ts";
import type { Managed } from "../../../api/model/managers.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import { decideLocally } from "../../client/local-client.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { Moment, PassClock } from "../../core/pass-clock.ts";
import type { ResourceAmount } from "../../deviceplugin/plugins.ts";
import type { MachineFacts } from "../../machine/facts.ts";
import { driverOf, snapshotOf } from "../../pass/snapshot.ts";
import type { ManagerFiles } from "../devices/manager-files.ts";
import type { DeviceSnapshot, NodeDevices } from "../devices/port.ts";
import type { PodClock } from "../pod-clock.ts";
import { type KnownPod, ObjectNumbers, type PodSet } from "../records/pod-set.ts";

interface NodeParts {
  readonly machine: MachineFacts;
  readonly profile: Profile;
  readonly kubeletConfiguration: unknown;
  readonly pods: readonly unknown[];
  readonly assignments: Readonly<Record<string, string>> | undefined;
  readonly nodeName: string;
  readonly cgroupMount: string;
  /** The allocatable; null: not decided yet. */
  readonly allocatable: QuantityList | null;
  readonly conditions: readonly ConditionState[];
  readonly sequence: number;
  readonly devices?: DeviceSnapshot;
  /** Amounts of devices by resource, newer than those in `allocatable`. */
  readonly amounts?: ReadonlyMap<string, ResourceAmount>;
}

/** The node's snapshot for decisions about its pods, with the conditions of the last eviction pass. */
export function nodeSnapshot(parts: NodeParts): Readonly<Record<string, unknown>> {
  const { machine, profile, kubeletConfiguration, pods, assignments, nodeName, cgroupMount, conditions, sequence } =
    parts;
  const snapshot = snapshotOf({
    machine,
    profile,
    kubeletConfiguration,
    pods,
    nodeName,
    sequence,
    cgroup: { driver: driverOf(kubeletConfiguration, profile), root: cgroupMount },
    ...parts.devices,
    ...(assignments === undefined ? {} : { assignments }),
  });
  const node = snapshot["node"] as { readonly status?: object } | undefined;
  const held = new Set<string>(conditions.map(({ type }) => type));
  const pressures = PRESSURE_CONDITIONS.map((type) => ({ type, status: held.has(type) ? "True" : "False" }));
  const given = [...(parts.amounts ?? [])].map(([resource, amount]) => [resource, String(amount.allocatable)]);
  const allocatable =
    parts.allocatable === null ? {} : { allocatable: { ...parts.allocatable, ...Object.fromEntries(given) } };
  return { ...snapshot, node: { ...node, status: { ...node?.status, ...allocatable, conditions: pressures } } };
}

interface Observation {
  readonly sequence: number;
  readonly machine: MachineFacts;
  readonly moment: Moment;
  readonly configuration: Result<unknown, Problem>;
}

interface Deps {
  readonly clock: PodClock;
  readonly observeMachine: () => MachineFacts;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly files: Pick<ManagerFiles, "redacted">;
  readonly devices?: Pick<NodeDevices, "snapshot" | "amounts">;
  readonly evictionClock: Pick<PassClock, "now" | "snapshotFields">;
}
interface Settings {
  readonly profile: Profile;
  readonly nodeName: string;
  readonly cgroupMount: string;
}

/** Makes snapshots of the node; the machine and its configuration are read once per sync. */
export class NodeSnapshotter {
  readonly #deps: Deps;
  readonly #settings: Settings;
  readonly #set: PodSet;
  /** The allocatable; null: not decided yet. */
  readonly allocatable: () => QuantityList | null;
  /** The conditions of the last eviction pass. */
  conditions: readonly ConditionState[] = [];
  #seen: Observation | null = null;

  constructor(deps: Deps, settings: Settings, set: PodSet, allocatable: () => QuantityList | null) {
    this.#deps = deps;
    this.#settings = settings;
    this.#set = set;
    this.allocatable = allocatable;
  }

  /**
   * Makes a snapshot. `pods`: the node's pods. `asking`: the uid of the pod to admit, for which plugin answers are included.
   * Errors: the configuration cannot be read.
   */
  async snapshot(
    pods: readonly KnownPod[],
    sequence: number,
    asking?: string,
  ): Promise<Result<Readonly<Record<string, unknown>>, Problem>> {
    return this.#snapshot(pods, await this.#seenIn(sequence), this.#devices(asking));
  }

  /** A snapshot with the last sync's observation, for callers that cannot wait. Null: there was none yet. */
  lastSnapshot(pods: readonly KnownPod[]): Result<Readonly<Record<string, unknown>>, Problem> | null {
    return this.#seen === null ? null : this.#snapshot(pods, this.#seen, this.#devices());
  }

  #devices(asking?: string): Pick<NodeParts, "devices" | "amounts"> {
    const { devices } = this.#deps;
    return devices === undefined ? {} : { devices: devices.snapshot(asking), amounts: devices.amounts() };
  }

  #snapshot(
    pods: readonly KnownPod[],
    { machine, configuration, sequence }: Observation,
    parts: Pick<NodeParts, "devices" | "amounts">,
  ): Result<Readonly<Record<string, unknown>>, Problem> {
    if (!configuration.ok) return err(configuration.error);
    const { nodeName, cgroupMount, profile } = this.#settings;
    return ok(
      nodeSnapshot({
        machine,
        profile,
        kubeletConfiguration: configuration.value,
        pods: this.#set.objects(pods, this.#deps.clock.nowMs()),
        assignments: this.#deps.files.redacted().assignments,
        nodeName,
        cgroupMount,
        allocatable: this.allocatable(),
        conditions: this.conditions,
        sequence,
        ...parts,
      }),
    );
  }

  /** A snapshot for an eviction pass, with changes of the clock, since its facts use the earlier clock. */
  async passSnapshot(
    pods: readonly KnownPod[],
    sequence: number,
  ): Promise<Result<{ readonly snapshot: Readonly<Record<string, unknown>>; readonly moment: Moment }, Problem>> {
    // evictions do not depend on devices
    const seen = await this.#seenIn(sequence);
    const { moment } = seen;
    const snapshot = this.#snapshot(pods, seen, {});
    if (!snapshot.ok) return snapshot;
    return ok({ moment, snapshot: { ...snapshot.value, ...this.#deps.evictionClock.snapshotFields(moment) } });
  }

  async #seenIn(sequence: number): Promise<Observation> {
    if (this.#seen?.sequence === sequence) return this.#seen;
    const { readConfiguration, observeMachine, evictionClock } = this.#deps;
    const configuration = await readConfiguration();
    const machine = observeMachine();
    const moment = evictionClock.now(Date.parse(machine.observedAt), machine.system.bootID ?? "");
    this.#seen = { sequence, configuration, machine, moment };
    return this.#seen;
  }
}

/** The configuration is read again this often, since a person may have changed it. */
const CHECK_INTERVAL_MS = 3000;

interface StartDeps {
  readonly clock: PodClock;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly files: ManagerFiles;
}
interface PublishedDeps {
  readonly files: ManagerFiles;
  readonly devices?: Pick<NodeDevices, "version">;
}

/**
 * Reasons why a kubelet would not start on this node, while they last: its configuration does not fit the state files,
 * for example after a change of cpuManagerPolicy. A kubelet reports that at its start; this daemon reads its
 * configuration while it runs, so it reports it at once, not only for the next pod.
 */
export class StartErrors {
  readonly #deps: StartDeps;
  readonly #set: PodSet;
  readonly #snapshotter: NodeSnapshotter;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #key = "";
  #standing: readonly Problem[] = [];

  constructor(deps: StartDeps, set: PodSet, snapshotter: NodeSnapshotter) {
    this.#deps = deps;
    this.#set = set;
    this.#snapshotter = snapshotter;
  }

  /** Called once per sync. */
  async run(sequence: number): Promise<readonly Problem[]> {
    const { readConfiguration, files, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#checkedAtMs < CHECK_INTERVAL_MS || this.#set.runtimePods === null) return this.#standing;
    this.#checkedAtMs = nowMs;
    const configuration = await readConfiguration();
    // reported by the code that needs it
    if (!configuration.ok) return this.#standing;
    const key = JSON.stringify([configuration.value, files.version]);
    if (key === this.#key) return this.#standing;
    const snapshot = await this.#snapshotter.snapshot(this.#set.living(), sequence);
    if (!snapshot.ok) return this.#standing;
    this.#key = key;
    this.#standing = faultsOf(snapshot.value, (error) => files.explained(error)).map((message) => ({
      from: "configuration",
      message,
    }));
    return this.#standing;
  }
}

/**
 * Start faults. With faults in the managers' state no pod is admitted (`admission` refuses); with others pods run,
 * but a person should know.
 */
function faultsOf(snapshot: unknown, explained: (error: string) => string): readonly string[] {
  const cpus = decideLocally("cpus", snapshot, { explain: "off" });
  const allocatable = decideLocally("allocatable", snapshot, { explain: "off" });
  const shut = new Set(cpus.ok ? (cpus.value.decision as Managed).startErrors : []);
  const others = new Set(allocatable.ok ? (allocatable.value.decision as AllocatableDecision).errors : []);
  return [
    ...[...shut].map(
      (error) =>
        `a kubelet would not start with it, so no pod is admitted: ${explained(error)}; or set the configuration back to what it was`,
    ),
    ...[...others]
      .filter((error) => !shut.has(error))
      .map((error) =>
        V1_REFUSED.test(error)
          ? `a kubelet would not start on this machine, since it has cgroup v1 and failCgroupV1 is true (the kubelet's default): ${error}; this daemon works with cgroup v1, so pods are admitted and run: boot the machine with cgroup v2, or set failCgroupV1: false in the kubelet configuration`
          : `a kubelet would not start with it, and this daemon admits pods that fit all the same: ${error}; correct the kubelet configuration`,
      ),
  ];
}
/** kubelet 1.36: validateKubeletOSConfiguration. */
const V1_REFUSED = /cgroup v1 support is unsupported/;

/** The node's snapshot for others, at any time, also between two syncs. */
export class PublishedSnapshot {
  readonly #deps: PublishedDeps;
  readonly #set: PodSet;
  readonly #snapshotter: NodeSnapshotter;
  readonly #objectNumbers = new ObjectNumbers();

  constructor(deps: PublishedDeps, set: PodSet, snapshotter: NodeSnapshotter) {
    this.#deps = deps;
    this.#set = set;
    this.#snapshotter = snapshotter;
  }

  /** Changes whenever the snapshot may have changed. */
  version(): string {
    const { files, devices } = this.#deps;
    const pods = this.#set
      .living()
      .map(
        ({ uid, record, runtimePod }) =>
          `${uid}:${this.#objectNumbers.of(record)}:${this.#objectNumbers.of(runtimePod)}`,
      );
    return `${this.#objectNumbers.of(files.read().assignments)} ${devices?.version ?? 0} ${pods.join(" ")}`;
  }

  /** Errors: a sentence; nothing has been observed yet, or the configuration cannot be read. */
  snapshot(): Result<Readonly<Record<string, unknown>>, string> {
    const snapshot = this.#snapshotter.lastSnapshot(this.#set.living());
    if (snapshot === null) return err("no turn of the daemon has ended yet");
    return snapshot.ok ? snapshot : err(snapshot.error.message);
  }
}
