import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Journal } from "../../actuator/apply/journal.ts";
import type { Hierarchy } from "../../actuator/cgroupfs/hierarchy.ts";
import { decideLocally } from "../../actuator/client/local-client.ts";
import {
  CONTAINER_HASH,
  OWNER,
  POD_UID,
  type RuntimeContainer,
  type RuntimePod,
} from "../../actuator/containerd/cri.ts";
import type { PodsRead } from "../../actuator/core/interfaces.ts";
import { PassClock } from "../../actuator/core/pass-clock.ts";
import { containerHash } from "../../actuator/lifecycle/config/labels.ts";
import type { PassReport } from "../../actuator/pass/loop.ts";
import { CurrentCgroups } from "../../actuator/pods/cgroups/cgroup-view.ts";
import { ManagerFiles } from "../../actuator/pods/devices/manager-files.ts";
import { PodManager } from "../../actuator/pods/manager.ts";
import { PodRecords } from "../../actuator/pods/records/records.ts";
import type { SyncPodRequest, SyncPodResult } from "../../actuator/pods/sync/worker-deps.ts";
import { ok, type Result } from "../../api/base/result.ts";
import { BOOT, ROOT, simulated } from "../actuator/cgroups/hierarchy-kit.ts";
import { SIM_SETTINGS } from "../actuator/pods/node/settings.ts";
import { machineAt } from "../sim/machine.ts";

const CONFIGURATION = { kubeReserved: { cpu: "1", memory: "1Gi" }, failCgroupV1: false };

const must = <T>(result: Result<T, unknown>): T => {
  if (result.ok) return result.value;
  throw new Error(String(result.error));
};

/**
 * The pod manager over a kernel and a container runtime in memory. Each pod starts at once. The pod records are files
 * on disk.
 */
export class PodsNode {
  readonly directory = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  readonly passes: PassReport[] = [];
  readonly problems: string[] = [];
  readonly manager: PodManager;
  readonly #hierarchy: Hierarchy;
  #read: PodsRead = { pods: [], whole: true, problems: [], notices: [] };
  #runs: ReadonlyMap<string, RuntimePod> = new Map();
  #nowMs = 1_800_000_000_000;
  #made = 0;

  constructor(version: 1 | 2) {
    this.#hierarchy = simulated(version).hierarchy;
    mkdirSync(join(this.directory, "state"));
    const at = (name: string): string => join(this.directory, "state", name);
    this.manager = new PodManager(
      {
        clock: { nowMs: () => this.#nowMs, monotonicMs: () => this.#nowMs, sleep: async () => {} },
        pods: {
          readPods: async () => this.#read,
          records: must(PodRecords.open(at("pods"), (message) => this.problems.push(message))),
        },
        runtime: {
          runtime: { pods: async () => ok(this.#runs), updateContainer: async () => ok(null) },
          worker: {
            sync: (asked) => this.#sync(asked),
            link: () => {},
            pruneLinks: () => {},
            end: async () => ({ isEnded: true, error: null }),
            forget: async () => ({ isGone: true, leftOvers: [] }),
            forgetVolumes: async () => ({ isGone: true, leftOvers: [] }),
            forgetOrphan: async () => ({ isGone: true, leftOvers: [] }),
            clear: async () => ({ removed: [], stays: [], foreign: [] }),
          },
          complete: (_, container) => container,
          hashOf: containerHash,
        },
        node: {
          readConfiguration: async () => ok(CONFIGURATION),
          observeMachine: () => machineAt(new Date(this.#nowMs).toISOString(), BOOT.bootId, version),
          hierarchy: this.#hierarchy,
          cgroups: new CurrentCgroups(),
          journal: must(Journal.open(at("journal.jsonl"), BOOT.bootId)),
        },
        decisions: {
          client: {
            decide: async (kind, snapshot, ask) => decideLocally(kind, snapshot, { ask }),
            commit: async () => {},
            report: async () => {},
          },
          files: new ManagerFiles(at("managers")),
        },
        eviction: { evictionClock: new PassClock(at(""), "eviction", () => this.#nowMs) },
        observers: {
          onEvent: () => {},
          onProblem: ({ message }) => this.problems.push(message),
          onPass: (report) => this.passes.push(report),
          onWorked: () => {},
        },
      },
      { ...SIM_SETTINGS, maxAtOnce: 256 },
    );
  }

  /** Sets the pods that have to run from now on. */
  wants(pods: readonly object[]): void {
    this.#read = { ...this.#read, pods };
  }

  /** Advances the clock by `afterMs`, then runs one turn and waits for the work that it started. */
  async turn(afterMs: number): Promise<void> {
    this.#nowMs += afterMs;
    const { problems } = await this.manager.sync();
    this.problems.push(...problems.map(({ message }) => message));
    await this.manager.rest();
  }

  /** Replaces a container with its next instance, as after its exit. */
  async restart(uid: string): Promise<void> {
    const pod = this.#runs.get(uid) as RuntimePod;
    const [first, ...others] = pod.containers as readonly [RuntimeContainer, ...RuntimeContainer[]];
    this.#runs = new Map(this.#runs).set(uid, { ...pod, containers: [await this.#containerOf(uid, first), ...others] });
  }

  close(): void {
    rmSync(this.directory, { recursive: true });
  }

  async #sync({ pod }: SyncPodRequest): Promise<SyncPodResult> {
    const { uid, namespace, name } = pod;
    const labels = { [OWNER]: ROOT, [POD_UID]: uid };
    const id = this.#id();
    const sandbox = { id, attempt: 0, isReady: true, createdAtMs: this.#nowMs, ips: [], labels, annotations: {} };
    const containers: RuntimeContainer[] = [];
    for (const container of pod.spec.containers) {
      const made = {
        ...RUNNING,
        name: container.name,
        sandboxId: id,
        image: container.image,
        labels,
        annotations: { [CONTAINER_HASH]: containerHash(pod, container) },
      };
      containers.push(await this.#containerOf(uid, made));
    }
    this.#runs = new Map(this.#runs).set(uid, { namespace, name, uid, sandboxes: [sandbox], containers });
    const started = containers.map((one) => one.name);
    return { sandboxId: id, started, faults: {}, undecided: [], error: null, refusal: null, isCut: false };
  }

  /** Creates another instance of a container with its cgroup, as the runtime does. */
  async #containerOf(uid: string, like: Omit<RuntimeContainer, "id">): Promise<RuntimeContainer> {
    const id = this.#id();
    const path = this.manager.view?.pods.get(uid)?.path;
    must(await this.#hierarchy.create(`${path}/${id}`, this.#hierarchy.support().controllers));
    return { ...like, id, createdAtMs: this.#nowMs, startedAtMs: this.#nowMs };
  }

  #id = (): string => (++this.#made).toString(16).padStart(64, "0");
}
const RUNNING = {
  attempt: 0,
  state: "running",
  createdAtMs: 0,
  startedAtMs: 0,
  finishedAtMs: null,
  exitCode: 0,
  reason: "",
  message: "",
  imageId: "sha256:1",
  logPath: "",
} as const;

const CONTAINERS = ["app", "proxy"] as const;
/** This many pods of two containers each, with a realistic mix of the three QoS classes. */
export const manyPods = (count: number): readonly object[] =>
  Array.from({ length: count }, (_, i) => {
    const amounts = { cpu: "20m", memory: "32Mi" };
    const resources = i % 5 === 0 ? {} : i % 5 === 1 ? { requests: amounts, limits: amounts } : { requests: amounts };
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `pod-${i}`, namespace: "bench", uid: `pod-${i}` },
      spec: {
        hostNetwork: true,
        containers: CONTAINERS.map((name) => ({ name, image: "busybox:1", resources })),
      },
    };
  });
