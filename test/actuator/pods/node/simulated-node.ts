import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as realPause } from "node:timers/promises";
import { Journal } from "../../../../actuator/apply/journal.ts";
import { decideLocally } from "../../../../actuator/client/local-client.ts";
import type { DecisionAnswer, DecisionClient } from "../../../../actuator/core/interfaces.ts";
import { PassClock } from "../../../../actuator/core/pass-clock.ts";
import { containerHash } from "../../../../actuator/lifecycle/config/labels.ts";
import { endOf } from "../../../../actuator/lifecycle/pod-state.ts";
import type { PodEnd, PodEvent } from "../../../../actuator/lifecycle/record.ts";
import type { MachineFacts } from "../../../../actuator/machine/facts.ts";
import type { PassReport } from "../../../../actuator/pass/loop.ts";
import { configurationOf } from "../../../../actuator/pass/snapshot.ts";
import { CurrentCgroups } from "../../../../actuator/pods/cgroups/cgroup-view.ts";
import { ManagerFiles } from "../../../../actuator/pods/devices/manager-files.ts";
import type { ContainerDevices, NodeDevices } from "../../../../actuator/pods/devices/port.ts";
import type { EvictionDeps } from "../../../../actuator/pods/eviction/evictor.ts";
import {
  type DecisionDeps,
  type ManagerSettings,
  type NodeDeps,
  type PodDeps,
  type PodEventDeps,
  PodManager,
  type RuntimeDeps,
  type SyncView,
} from "../../../../actuator/pods/manager.ts";
import type { KnownPod } from "../../../../actuator/pods/records/pod-set.ts";
import { PodRecords } from "../../../../actuator/pods/records/records.ts";
import { Images } from "../../../../actuator/pods/sync/images.ts";
import type { LogLinks } from "../../../../actuator/pods/sync/log-link.ts";
import { PodWorker } from "../../../../actuator/pods/sync/pod-worker.ts";
import { ok } from "../../../../api/base/result.ts";
import { v1_36 } from "../../../../api/profiles/v1_36.ts";
import { podManifest, podsRead } from "../../../kit/manifests.ts";
import { RAM_DISK } from "../../../kit/ram-disk.ts";
import { SimClock } from "../../../sim/clock.ts";
import { machineAt } from "../../../sim/machine.ts";
import { PodTime } from "../../../sim/pod-time.ts";
import { PodsRuntime } from "../../../sim/pods-runtime.ts";
import { BOOT, ROOT, simulated } from "../../cgroups/hierarchy-kit.ts";
import { FakeMounter } from "../fake-mounter.ts";
import { scratch } from "../scratch.ts";
import { SIM_SETTINGS } from "./settings.ts";

/** The controller of each file that a test reads from a simulated cgroup. */
const MOUNTS: Readonly<Record<string, string>> = { cpu: "cpu", memory: "memory", cpuset: "cpuset" };
/** How many pauses of 10 ms of real time work may take between two moments of simulated time. */
const PATIENCE = 15;
const HOST = {
  hostIPs: SIM_SETTINGS.hostIPs,
  allocatable: {},
  clusterDomain: "",
  clusterDNS: [],
  resolvConf: { servers: [], searches: [], options: [] },
  security: { seccompDefault: false, seccompDirectory: "/none", maskedPaths: [] },
};
/** Seven CPUs for pods. */
const CONFIGURATION = { kubeReserved: { cpu: "1", memory: "1Gi" }, failCgroupV1: false };

export interface SimulatedPodsNodeOptions {
  readonly version?: 1 | 2;
  readonly configuration?: object;
  /** Usage that an evicting node measures. */
  readonly stats?: () => Promise<Readonly<Record<string, unknown>>>;
  readonly reclaim?: EvictionDeps["reclaim"];
  readonly counters?: PodEventDeps["counters"];
  readonly listening?: NodeDeps["listening"];
  readonly otherKubelet?: RuntimeDeps["otherKubelet"];
  readonly machine?: (machine: MachineFacts) => MachineFacts;
  readonly client?: (client: DecisionClient) => DecisionClient;
  /** Device plugins. */
  readonly nodeDevices?: NodeDevices;
  readonly containerDevices?: ContainerDevices;
  /** The directory that log collectors read. */
  readonly logLinks?: (dir: string) => LogLinks;
  readonly kubeletsDevices?: DecisionDeps["kubeletsDevices"];
  /** Replaces `pods`. */
  readonly readPods?: PodDeps["readPods"];
}

/** The pod manager with a simulated runtime, kernel and clock; the decisions are real. */
export class SimulatedPodsNode {
  readonly time = new PodTime(new SimClock(1_800_000_000_000));
  readonly kernel;
  readonly runtime: PodsRuntime;
  readonly events: PodEvent[] = [];
  readonly problems: string[] = [];
  /** Every change of a cgroup, in order: `PATH FILE VALUE`. */
  readonly writes: string[] = [];
  readonly decisions: { readonly kind: string; readonly answer: DecisionAnswer }[] = [];
  pods: readonly object[] = [];
  /** Settings of the next daemon. */
  settings: ManagerSettings = SIM_SETTINGS;
  manager: PodManager;
  last: SyncView | null = null;
  /** The last pass over the cgroups. */
  pass: PassReport | null = null;
  readonly #options: SimulatedPodsNodeOptions;
  readonly #hierarchy;
  /** Holds `pods`, `logs` and `state`. */
  readonly dir = scratch(RAM_DISK);
  #woken = false;

  constructor(options: SimulatedPodsNodeOptions = {}) {
    this.#options = options;
    ({ kernel: this.kernel, hierarchy: this.#hierarchy } = simulated(options.version ?? 1));
    this.runtime = new PodsRuntime(this.time, this.kernel, ROOT);
    this.runtime.images.set("busybox:1", { id: "sha256:1" });
    this.kernel.afterWrite = ({ path, file }, value) => this.writes.push(`${path} ${file} ${value}`);
    for (const name of ["pods", "logs", "state"]) mkdirSync(join(this.dir, name));
    this.manager = this.#open();
  }

  /** Writes a checkpoint, as a previous daemon would have left it. */
  write(checkpoint: string): void {
    new ManagerFiles(join(this.dir, "state/managers")).persist({
      assignments: { kubelet_internal_checkpoint: checkpoint },
    });
  }

  /** Kills the daemon, and starts it again. */
  restart(): void {
    this.manager = this.#open();
  }

  /** Lets `seconds` seconds pass, with a turn each. */
  async run(seconds: number): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      do {
        this.#woken = false;
        this.last = await this.time.drive(this.manager.sync());
        await this.#work();
      } while (this.#woken);
      await this.time.pass(1000);
    }
  }

  /** Waits for work that depends on the machine's disk, not on simulated time. */
  async #work(): Promise<void> {
    for (let i = 0; i < PATIENCE || this.time.isBusy(); i++) {
      await this.time.pass(0);
      const isDone = await Promise.race([this.manager.rest().then(() => true), realPause(10).then(() => false)]);
      if (isDone) return;
    }
  }

  pod(uid: string): KnownPod {
    const known = this.manager.set.get(uid);
    if (known === null) throw new Error(`no pod ${uid}: ${[...this.manager.set.records.entries()].map(([id]) => id)}`);
    return known;
  }
  /** Ends a pod because of the node's state. */
  end(uid: string, cause: PodEnd["cause"], reason: string, message: string, more: Partial<PodEnd> = {}): void {
    const end = endOf(reason, message, this.time.nowMs(), more);
    if (cause === "evicted") this.manager.lifecycle.handle(uid, { kind: "Evicted", end, signal: reason });
    else if (cause === "preempted" || cause === "drained")
      this.manager.lifecycle.handle(uid, { kind: cause === "preempted" ? "Preempted" : "Drained", end });
    else throw new Error(`no end for the node's sake: ${cause}`);
  }
  status(uid: string) {
    return this.manager.set.statusOf(this.pod(uid), this.time.nowMs());
  }
  /** `reason: message` of the events since the last call. */
  reportOf(reasons = /^Resize|^Evicted/): readonly string[] {
    return this.events
      .splice(0)
      .filter(({ reason }) => reasons.test(reason))
      .map(({ reason, message }) => `${reason}: ${message}`);
  }
  /** A value in the kernel; the path is in the daemon's format. */
  value(path: string, file: string): string | undefined {
    const mount = this.kernel.rules.version === 2 ? "" : (MOUNTS[file.slice(0, file.indexOf("."))] ?? "");
    return this.kernel.find(mount, `${ROOT}${path}`)?.files.get(file);
  }
  /** Sets the bytes in use in a cgroup, which its ancestors count too. */
  use(path: string, bytes: number): void {
    const mount = this.kernel.rules.version === 2 ? "" : "memory";
    const found = this.kernel.find(mount, `${ROOT}${path}`);
    if (found === undefined) throw new Error(`no cgroup ${path}`);
    found.usage = BigInt(bytes);
  }
  /** The id of a container's running instance. */
  idOf(uid: string, name = "app"): string {
    const seen = this.pod(uid).runtimePod?.containers.find((c) => c.name === name && c.state === "running");
    return seen?.id ?? "none";
  }

  #open(): PodManager {
    const { time: clock, runtime } = this;
    const must = <T>(result: { ok: true; value: T } | { ok: false; error: unknown }): T => {
      if (result.ok) return result.value;
      throw new Error(String(result.error));
    };
    const roots = { podsDirectory: join(this.dir, "pods"), podLogsDirectory: join(this.dir, "logs") };
    const onEvent = (event: PodEvent): void => void this.events.push(event);
    const version = this.kernel.rules.version;
    const cgroups = new CurrentCgroups();
    const worker = new PodWorker({
      profile: v1_36,
      runtime,
      images: new Images(runtime, clock, { serializeImagePulls: true, maxParallelImagePulls: null }),
      mounter: new FakeMounter(),
      clock,
      onEvent,
      ...(this.#options.containerDevices === undefined ? {} : { devices: this.#options.containerDevices }),
      ...(this.#options.logLinks === undefined ? {} : { logLinks: this.#options.logLinks(this.dir) }),
      owner: ROOT,
      roots,
      node: () => ({ ...HOST, cgroupVersion: version }),
      cgroupParentOf: ({ uid }) => cgroups.parentOf(uid, ROOT),
      sandboxValuesOf: (pod) => cgroups.sandboxOf(pod, configurationOf(CONFIGURATION, v1_36)),
      memoryBytes: () => null,
    });
    const {
      configuration = {},
      stats,
      reclaim,
      counters,
      listening,
      kubeletsDevices,
      machine = (facts: MachineFacts) => facts,
    } = this.#options;
    const { otherKubelet, nodeDevices } = this.#options;
    return new PodManager(
      {
        clock,
        pods: {
          readPods: this.#options.readPods ?? (async () => podsRead(this.pods)),
          records: must(PodRecords.open(join(this.dir, "state/pods"), (message) => this.problems.push(message))),
        },
        runtime: {
          runtime,
          worker,
          complete: (_, container) => container,
          hashOf: containerHash,
          ...(otherKubelet && { otherKubelet }),
        },
        node: {
          readConfiguration: async () => ok({ ...CONFIGURATION, ...configuration }),
          observeMachine: () => machine(machineAt(new Date(clock.nowMs()).toISOString(), BOOT.bootId, version)),
          hierarchy: this.#hierarchy,
          cgroups,
          journal: must(Journal.open(join(this.dir, "state/journal.jsonl"), BOOT.bootId)),
          ...(listening && { listening }),
        },
        decisions: {
          client: this.#client(),
          files: new ManagerFiles(join(this.dir, "state/managers")),
          ...(nodeDevices && { devices: nodeDevices }),
          ...(kubeletsDevices && { kubeletsDevices }),
        },
        eviction: {
          evictionClock: new PassClock(join(this.dir, "state"), "eviction", () => clock.monotonicMs()),
          ...(stats && { stats: { observe: stats, unseen: [] } }),
          ...(reclaim && { reclaim }),
        },
        observers: {
          onEvent,
          onProblem: ({ message }) => this.problems.push(message),
          onPass: (report) => {
            this.pass = report;
          },
          onWorked: () => {
            this.#woken = true;
          },
          ...(counters && { counters }),
        },
      },
      this.settings,
    );
  }

  /** A client that decides in this process, and records the result of the last settled eviction pass. */
  #client(): DecisionClient {
    let facts: unknown;
    const client: DecisionClient = {
      decide: async (kind, snapshot, ask) => {
        const answer = decideLocally(kind, snapshot, {
          ask,
          ...(kind === "eviction" && facts !== undefined ? { facts: { eviction: facts } } : {}),
        });
        if (answer.ok) this.decisions.push({ kind, answer: answer.value });
        return answer;
      },
      commit: async (settled) => {
        const kind = this.decisions.find(({ answer }) => answer === settled)?.kind;
        if (kind === "eviction") facts = settled.next ?? facts;
      },
      report: async () => {},
    };
    return this.#options.client?.(client) ?? client;
  }
}

export interface Amounts {
  readonly cpu?: string;
  readonly memory?: string;
}
/** A pod with one container, `app`; the limits default to the requests. */
export const appPod = (
  uid: string,
  requests: Amounts,
  { limits = requests, container = {}, spec = {}, metadata = {} }: PodParts = {},
): object =>
  podManifest(uid, {
    metadata: { namespace: "default", uid, generation: 1, ...metadata },
    spec: {
      terminationGracePeriodSeconds: 1,
      hostNetwork: true,
      containers: [{ name: "app", image: "busybox:1", resources: { requests, limits }, ...container }],
      ...spec,
    },
  });
export interface PodParts {
  readonly limits?: Amounts;
  readonly container?: object;
  readonly spec?: object;
  readonly metadata?: object;
}
