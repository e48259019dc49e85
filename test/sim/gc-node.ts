import { join } from "node:path";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import type { LogRemoval, ObservedLogs } from "../../actuator/containerd/logs.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { DecisionClient, Problem } from "../../actuator/core/interfaces.ts";
import { PassClock } from "../../actuator/core/pass-clock.ts";
import { Collector } from "../../actuator/gc/collector.ts";
import type { GcDeps, GcReport, LogFiles, RemovalReport } from "../../actuator/gc/dependencies.ts";
import { GcJournal, type GcKind } from "../../actuator/gc/journal.ts";
import type { ClosedPass } from "../../actuator/gc/remove.ts";
import type { MachineFacts } from "../../actuator/machine/facts.ts";
import { ok } from "../../api/base/result.ts";
import type { GcOperation } from "../../api/model/container-gc.ts";
import type { SimClock } from "./clock.ts";
import { FakeRuntime } from "./fake-runtime.ts";

/** The death of a simulated daemon. */
export class Died extends Error {}

export interface GcPod {
  readonly metadata: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly spec: { readonly containers: readonly unknown[] };
}

/**
 * A node in memory with the real collector, client, journal, facts store and outbox; only the runtime and the container
 * logs are simulated.
 */
export class GcNode {
  readonly runtime = new FakeRuntime();
  readonly problems: Problem[] = [];
  readonly removals: RemovalReport[] = [];
  readonly settled: ClosedPass[] = [];
  /** Ids that any decision selected for removal. */
  readonly planned = new Set<string>();
  pods: GcPod[] = [];
  podsReadable = true;
  readonly podLogs = new Set<string>();
  readonly links = new Set<string>();
  kubeletConfiguration: Record<string, unknown> = {};
  flags: Record<string, number> = {};
  dryRun = false;
  joinsEviction = true;
  /** The number of questions and settlements before the one at which the daemon dies. */
  diesAtQuestion = Number.POSITIVE_INFINITY;
  stop = new AbortController();
  /** The amount by which the wall clock was set; the clock since boot is not affected. */
  clockSetMs = 0;
  memory!: FactsStore;
  readonly #clock: SimClock;
  readonly #dir: string;
  /** The API that the client asks; a test may replace it. */
  fetch: (request: Request) => Promise<Response>;
  #client!: DecisionClient;
  #collector!: Collector;

  constructor(
    clock: SimClock,
    dir: string,
    fetch: (request: Request) => Promise<Response>,
    given: Partial<Pick<GcNode, "dryRun" | "joinsEviction" | "flags">> = {},
  ) {
    Object.assign(this, given);
    this.#clock = clock;
    this.#dir = dir;
    this.fetch = fetch;
    this.restart();
  }

  get outboxSize(): number {
    return Outbox.open(join(this.#dir, "outbox.jsonl")).size;
  }
  get journal(): GcJournal {
    return new GcJournal(join(this.#dir, "collection.jsonl"));
  }
  /** The facts that the next image pass would send. */
  get facts(): unknown {
    return new FactsStore(this.#dir, (message) => this.problems.push({ from: "memory", message })).factsFor(
      "image-gc",
      {
        observedAt: new Date(this.#clock.nowMs + 1e9).toISOString(),
      },
    );
  }

  turn(due: readonly GcKind[] = ["container-gc", "image-gc"], operation?: GcOperation): Promise<GcReport> {
    return this.#collector.collect(new Set(due), operation);
  }
  /** Returns null if the daemon died in the turn; it is then started again. */
  async turnOrDie(due?: readonly GcKind[]): Promise<GcReport | null> {
    try {
      return await this.turn(due);
    } catch (e) {
      if (!(e instanceof Died)) throw e;
      this.runtime.on = () => undefined;
      this.diesAtQuestion = Number.POSITIVE_INFINITY;
      this.restart();
      return null;
    }
  }

  restart(): void {
    const access = {
      url: "http://api.sim",
      token: undefined,
      timeoutMs: 1000,
      fetch: (request: Request) => this.fetch(request),
    };
    const onProblem = (problem: Problem) => void this.problems.push(problem);
    this.memory = new FactsStore(this.#dir, (message) => onProblem({ from: "memory", message }));
    const outbox = Outbox.open(join(this.#dir, "outbox.jsonl"));
    this.#client = this.#watched(new ApiClient(access, outbox, this.memory, onProblem));
    this.#collector = new Collector(this.#ports(), {
      settings: { nodeName: "sim", cgroupMount: "/sim", kubeletVersion: "1.36", flags: this.flags },
      dryRun: this.dryRun,
      joinsEviction: this.joinsEviction,
      stop: this.stop.signal,
      onRemoval: (removal) => this.removals.push(removal),
      onSettled: (settled) => this.settled.push(settled),
    });
  }

  /** The real client, wrapped so that the daemon may die at a question. */
  #watched(client: DecisionClient): DecisionClient {
    const live = (): void => {
      if (--this.diesAtQuestion < 0) throw new Died("at a question");
    };
    return {
      decide: async (kind, snapshot, ask) => {
        live();
        const answer = await client.decide(kind, snapshot, ask);
        const { remove = [] } = answer.ok ? (answer.value.decision as { remove?: readonly { id: string }[] }) : {};
        for (const { id } of remove) this.planned.add(id);
        return answer;
      },
      commit: async (answer, isNews) => {
        live();
        await client.commit(answer, isNews);
        live();
      },
      report: (report, answer) => client.report(report, answer),
    };
  }

  #ports(): GcDeps {
    return {
      runtime: this.runtime,
      logs: this.#logs(),
      observeMachine: () => machineAt(new Date(++this.#clock.nowMs + this.clockSetMs).toISOString()),
      readPods: async () => ({
        pods: this.podsReadable ? this.pods : null,
        whole: this.podsReadable,
        problems: this.podsReadable ? [] : [{ from: "pods", message: "the kubelet does not answer" }],
        notices: [],
      }),
      readConfiguration: async () => ok(this.kubeletConfiguration),
      observeDisks: () => {
        const { capacityBytes, availableBytes } = this.runtime;
        const inodes = { inodes: 1000, inodesFree: 900, inodesUsed: 100 };
        const usedBytes = capacityBytes - availableBytes;
        const time = new Date(this.#clock.nowMs + this.clockSetMs).toISOString();
        const disk = { time, capacityBytes, availableBytes, usedBytes, ...inodes };
        return { imageFs: disk, containerFs: disk, fileSystems: "one", missing: [] };
      },
      clock: new PassClock(this.#dir, "image-gc", () => this.#clock.nowMs),
      evictionClock: new PassClock(this.#dir, "eviction", () => this.#clock.nowMs),
      client: this.#client,
      journal: this.dryRun ? null : this.journal,
    };
  }

  #logs(): LogFiles {
    const take = (from: Set<string>, name: string): LogRemoval => ok(from.delete(name) ? "removed" : "gone");
    return {
      observe: (): ObservedLogs => ({
        podLogDirectories: [...this.podLogs].sort(),
        danglingLogLinks: [...this.links].sort(),
        missing: [],
      }),
      removePodLogs: (name) => take(this.podLogs, name),
      removeLogLink: (name) => take(this.links, name),
      removeContainerLog: () => ok(null),
    };
  }
}

const GIB = 2 ** 30;
const machineAt = (observedAt: string): MachineFacts => ({
  observedAt,
  system: {
    hostname: "sim",
    architecture: "amd64",
    bootID: "boot-1",
    kernelVersion: undefined,
    osImage: undefined,
    machineID: undefined,
    systemUUID: undefined,
    startTime: undefined,
  },
  cpus: [{ cpu: 0, core: 0, kernelCore: 0, socket: 0, numa: 0, uncoreCache: 0 }],
  numaNodes: [{ id: 0, memoryBytes: 16 * GIB, hugepages: {} }],
  distances: [],
  hugepages: {},
  memory: { totalBytes: 16 * GIB, swapTotalBytes: 0, pageSizeBytes: 4096 },
  memoryUsage: undefined,
  swapUsage: undefined,
  processes: { maxpid: 32768, curproc: 100 },
  nodeFs: undefined,
  cgroup: { version: 2, root: "/sim", memory: "/sim", hugetlb: false },
  missing: [],
});
