import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as realPause } from "node:timers/promises";
import { decideHere } from "../../../../actuator/decide-here.ts";
import { Journal } from "../../../../actuator/journal.ts";
import { containerHash } from "../../../../actuator/lifecycle/config/container-hash.ts";
import type { PodEvent } from "../../../../actuator/lifecycle/event.ts";
import type { PassReport } from "../../../../actuator/loop.ts";
import type { MachineFacts } from "../../../../actuator/machine/facts.ts";
import { PassClock } from "../../../../actuator/pass-clock.ts";
import type { DeviceDesk, DeviceHands } from "../../../../actuator/pods/devices/port.ts";
import { Images } from "../../../../actuator/pods/images.ts";
import { PodManager, type TurnView } from "../../../../actuator/pods/manager.ts";
import { ManagerFiles } from "../../../../actuator/pods/manager-files.ts";
import type { ManagerPorts } from "../../../../actuator/pods/manager-ports.ts";
import type { KnownPod } from "../../../../actuator/pods/pod-set.ts";
import { PodRecords } from "../../../../actuator/pods/records.ts";
import { PodWorker } from "../../../../actuator/pods/worker.ts";
import { cgroupParentOf } from "../../../../actuator/pods/workers.ts";
import type { DecisionAnswer, DecisionClient } from "../../../../actuator/ports.ts";
import { ok } from "../../../../api/model/result.ts";
import { SimClock } from "../../../sim/clock.ts";
import { machineAt } from "../../../sim/machine.ts";
import { PodTime } from "../../../sim/pod-time.ts";
import { PodsRuntime } from "../../../sim/pods-runtime.ts";
import { BOOT, ROOT, simulated } from "../../cgroups/grounds.ts";
import { FakeMounter, scratch } from "../pod-kit.ts";
import { SIM_SETTINGS } from "./settings.ts";

/** Files of a simulated cgroup that a test asks about, by controller's name. */
const MOUNTS: Readonly<Record<string, string>> = { cpu: "cpu", memory: "memory", cpuset: "cpuset" };
/** Tens of real milliseconds that work may take between two moments of simulated time. */
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

export interface WorldOptions {
  readonly version?: 1 | 2;
  readonly configuration?: object;
  /** Of the running of a node that evicts. */
  readonly stats?: () => Promise<Readonly<Record<string, unknown>>>;
  readonly reclaim?: ManagerPorts["reclaim"];
  readonly counters?: ManagerPorts["counters"];
  readonly listening?: ManagerPorts["listening"];
  readonly machine?: (machine: MachineFacts) => MachineFacts;
  readonly client?: (client: DecisionClient) => DecisionClient;
  /** Device plugins. */
  readonly desk?: DeviceDesk;
  readonly hands?: DeviceHands;
  /** Instead of `pods`. */
  readonly readPods?: ManagerPorts["readPods"];
}

/** The manager of pods over a runtime, a kernel and a time that are made up; the decisions are the real ones. */
export class PodsWorld {
  readonly time = new PodTime(new SimClock(1_800_000_000_000));
  readonly kernel;
  readonly runtime: PodsRuntime;
  readonly events: PodEvent[] = [];
  readonly problems: string[] = [];
  /** Every change of a cgroup, in its order: `PATH FILE VALUE`. */
  readonly writes: string[] = [];
  readonly decisions: { readonly kind: string; readonly answer: DecisionAnswer }[] = [];
  pods: readonly object[] = [];
  manager: PodManager;
  last: TurnView | null = null;
  /** Of the cgroups, the last. */
  pass: PassReport | null = null;
  readonly #options: WorldOptions;
  readonly #hierarchy;
  /** Holds `pods`, `logs` and `state`. */
  readonly dir = scratch();
  #woken = false;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    ({ kernel: this.kernel, hierarchy: this.#hierarchy } = simulated(options.version ?? 1));
    this.runtime = new PodsRuntime(this.time, this.kernel, ROOT);
    this.runtime.images.set("busybox:1", { id: "sha256:1" });
    this.kernel.afterWrite = ({ path, file }, value) => this.writes.push(`${path} ${file} ${value}`);
    for (const name of ["pods", "logs", "state"]) mkdirSync(join(this.dir, name));
    this.manager = this.#open();
  }

  /** As a daemon before this one left it. */
  write(checkpoint: string): void {
    new ManagerFiles(join(this.dir, "state/managers")).keep({
      assignments: { kubelet_internal_checkpoint: checkpoint },
    });
  }

  /** The daemon is killed, and started again. */
  restart(): void {
    this.manager = this.#open();
  }

  /** Lets so many seconds pass, with a turn each. */
  async run(seconds: number): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      do {
        this.#woken = false;
        this.last = await this.time.drive(this.manager.turn());
        await this.#work();
      } while (this.#woken);
      await this.time.pass(1000);
    }
  }

  /** Lets work get on that waits for the machine's disk, and not for simulated time. */
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
  status(uid: string) {
    return this.manager.set.statusOf(this.pod(uid), this.time.nowMs());
  }
  /** `reason: message` of what was told since the last time. */
  told(reasons = /^Resize|^Evicted/): readonly string[] {
    return this.events
      .splice(0)
      .filter(({ reason }) => reasons.test(reason))
      .map(({ reason, message }) => `${reason}: ${message}`);
  }
  /** A value in the kernel; the path as the daemon writes it. */
  value(path: string, file: string): string | undefined {
    const mount = this.kernel.rules.version === 2 ? "" : (MOUNTS[file.slice(0, file.indexOf("."))] ?? "");
    return this.kernel.find(mount, `${ROOT}${path}`)?.files.get(file);
  }
  /** Bytes in use in a cgroup, which those above it count too. */
  use(path: string, bytes: number): void {
    const mount = this.kernel.rules.version === 2 ? "" : "memory";
    const found = this.kernel.find(mount, `${ROOT}${path}`);
    if (found === undefined) throw new Error(`no cgroup ${path}`);
    found.usage = BigInt(bytes);
  }
  /** The running instance of a container. */
  idOf(uid: string, name = "app"): string {
    const seen = this.pod(uid).seen?.containers.find((c) => c.name === name && c.state === "running");
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
    let manager: PodManager | undefined;
    const worker = new PodWorker({
      runtime,
      images: new Images(runtime, clock, { serializeImagePulls: true, maxParallelImagePulls: null }),
      mounter: new FakeMounter(),
      clock,
      onEvent,
      ...(this.#options.hands === undefined ? {} : { devices: this.#options.hands }),
      owner: ROOT,
      roots,
      node: () => ({ ...HOST, cgroupVersion: version }),
      cgroupParentOf: ({ uid }) => {
        const view = manager?.view ?? null;
        return view === null ? "" : cgroupParentOf(view, uid, ROOT);
      },
      memoryBytes: () => null,
    });
    const {
      configuration = {},
      stats,
      reclaim,
      counters,
      listening,
      machine = (facts: MachineFacts) => facts,
    } = this.#options;
    manager = new PodManager(
      {
        clock,
        evictionClock: new PassClock(join(this.dir, "state"), "eviction", () => clock.monotonicMs()),
        runtime,
        worker,
        readPods: this.#options.readPods ?? (async () => ({ pods: this.pods, whole: true, problems: [], notices: [] })),
        readConfiguration: async () => ok({ ...CONFIGURATION, ...configuration }),
        observeMachine: () => machine(machineAt(new Date(clock.nowMs()).toISOString(), BOOT.bootId, version)),
        client: this.#client(),
        hierarchy: this.#hierarchy,
        journal: must(Journal.open(join(this.dir, "state/journal.jsonl"), BOOT.bootId)),
        records: must(PodRecords.open(join(this.dir, "state/pods"), (message) => this.problems.push(message))),
        files: new ManagerFiles(join(this.dir, "state/managers")),
        complete: (_, container) => container,
        hashOf: containerHash,
        ...(this.#options.desk === undefined ? {} : { devices: this.#options.desk }),
        ...(stats === undefined ? {} : { stats }),
        ...(reclaim === undefined ? {} : { reclaim }),
        ...(counters === undefined ? {} : { counters }),
        ...(listening === undefined ? {} : { listening }),
        onEvent,
        onProblem: ({ message }) => this.problems.push(message),
        onPass: (report) => {
          this.pass = report;
        },
        onWorked: () => {
          this.#woken = true;
        },
      },
      SIM_SETTINGS,
    );
    return manager;
  }

  /** Decides here, and remembers what the last settled eviction pass gave. */
  #client(): DecisionClient {
    let facts: unknown;
    const client: DecisionClient = {
      decide: async (kind, snapshot, ask) => {
        const answer = decideHere(kind, snapshot, {
          ask,
          ...(kind === "eviction" && facts !== undefined ? { facts: { eviction: facts } } : {}),
        });
        if (answer.ok) this.decisions.push({ kind, answer: answer.value });
        return answer;
      },
      settle: async (settled) => {
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
/** A pod with one container, `app`; the limits are its requests where none are said. */
export const podWith = (
  uid: string,
  requests: Amounts,
  { limits = requests, container = {}, spec = {}, metadata = {} }: PodParts = {},
): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: uid, namespace: "default", uid, generation: 1, ...metadata },
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
