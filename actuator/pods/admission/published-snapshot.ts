import type { AllocatableDecision } from "../../../api/model/allocatable.ts";
import type { Managed } from "../../../api/model/managers.ts";
import { err, type Result } from "../../../api/model/result.ts";
import { decideLocally } from "../../client/local-client.ts";
import type { Problem } from "../../core/ports.ts";
import type { ManagerFiles } from "../devices/manager-files.ts";
import type { NodeDevices } from "../devices/port.ts";
import type { PodClock } from "../ports.ts";
import { Identities, type PodSet } from "../records/pod-set.ts";
import type { NodeSnapshotter } from "./node-snapshotter.ts";

/** The configuration is read again this often, since a person may have changed it. */
const LOOK_MS = 3000;

interface StartPorts {
  readonly clock: PodClock;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  readonly files: ManagerFiles;
}
interface PublishedPorts {
  readonly files: ManagerFiles;
  readonly devices?: Pick<NodeDevices, "version">;
}

/**
 * Reasons why a kubelet would not start on this node, while they hold: its configuration does not fit the state files, as after
 * a change of cpuManagerPolicy. A kubelet says so at its start. This daemon takes a configuration while it runs, so it says so
 * then, and not only to the next pod.
 */
export class StartRefusals {
  readonly #ports: StartPorts;
  readonly #set: PodSet;
  readonly #snapshotter: NodeSnapshotter;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #key = "";
  #standing: readonly Problem[] = [];

  constructor(ports: StartPorts, set: PodSet, snapshotter: NodeSnapshotter) {
    this.#ports = ports;
    this.#set = set;
    this.#snapshotter = snapshotter;
  }

  /** Once a sync. */
  async run(sequence: number): Promise<readonly Problem[]> {
    const { readConfiguration, files, clock } = this.#ports;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lookedAtMs < LOOK_MS || this.#set.runtimePods === null) return this.#standing;
    this.#lookedAtMs = nowMs;
    const configuration = await readConfiguration();
    // told by whoever needs it
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

/** Faults of the managers' state let nobody in (`admission` refuses then); with the others pods run, and a person should know. */
function faultsOf(snapshot: unknown, explained: (error: string) => string): readonly string[] {
  const cpus = decideLocally("cpus", snapshot, { explain: "off" });
  const allocatable = decideLocally("allocatable", snapshot, { explain: "off" });
  const shut = new Set(cpus.ok ? (cpus.value.decision as Managed).startErrors : []);
  const others = new Set(allocatable.ok ? (allocatable.value.decision as AllocatableDecision).errors : []);
  return [
    ...[...shut].map(
      (error) =>
        `a kubelet would not start with it, so no pod is let in: ${explained(error)}; or set the configuration back to what it was`,
    ),
    ...[...others]
      .filter((error) => !shut.has(error))
      .map((error) =>
        V1_REFUSED.test(error)
          ? `a kubelet would not start on this machine, since it has cgroup v1 and failCgroupV1 is true (the kubelet's default): ${error}; this daemon works with cgroup v1, so pods are let in and run: boot the machine with cgroup v2, or set failCgroupV1: false in the kubelet configuration`
          : `a kubelet would not start with it, and this daemon lets in pods that fit all the same: ${error}; correct the kubelet configuration`,
      ),
  ];
}
/** kubelet 1.36: validateKubeletOSConfiguration. */
const V1_REFUSED = /cgroup v1 support is unsupported/;

/** The node as others may ask about it at any time, between two syncs too. */
export class PublishedSnapshot {
  readonly #ports: PublishedPorts;
  readonly #set: PodSet;
  readonly #snapshotter: NodeSnapshotter;
  readonly #identities = new Identities();

  constructor(ports: PublishedPorts, set: PodSet, snapshotter: NodeSnapshotter) {
    this.#ports = ports;
    this.#set = set;
    this.#snapshotter = snapshotter;
  }

  /** Another one whenever the snapshot may be another. */
  version(): string {
    const { files, devices } = this.#ports;
    const pods = this.#set
      .living()
      .map(({ uid, record, runtimePod }) => `${uid}:${this.#identities.of(record)}:${this.#identities.of(runtimePod)}`);
    return `${this.#identities.of(files.read().assignments)} ${devices?.version ?? 0} ${pods.join(" ")}`;
  }

  /** Errors: a sentence; nothing has been seen yet, or the configuration cannot be read. */
  snapshot(): Result<Readonly<Record<string, unknown>>, string> {
    const snapshot = this.#snapshotter.lastSnapshot(this.#set.living());
    if (snapshot === null) return err("no turn of the daemon has ended yet");
    return snapshot.ok ? snapshot : err(snapshot.error.message);
  }
}
