import { join } from "node:path";
import { Journal, recover } from "../../actuator/apply/journal.ts";
import type { Hierarchy } from "../../actuator/cgroupfs/hierarchy.ts";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { Problem } from "../../actuator/core/interfaces.ts";
import type { LoopDeps } from "../../actuator/pass/loop.ts";
import { type PassReport, runPass } from "../../actuator/pass/loop.ts";
import { ok } from "../../api/base/result.ts";
import { cutShort, Killed } from "../actuator/cgroups/apply-kit.ts";
import { simulated } from "../actuator/cgroups/hierarchy-kit.ts";
import type { SimKernel } from "../actuator/cgroups/sim-kernel.ts";
import { podsRead } from "../kit/manifests.ts";
import type { SimClock } from "./clock.ts";
import { machineAt } from "./machine.ts";

const SETTINGS = {
  mode: "enforce",
  nodeName: "sim",
  kubeletVersion: "1.36",
  cgroupMount: "/sim",
  containers: "create",
  removeOrphans: true,
} as const;

export interface SimPod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly containers: readonly unknown[] };
}

/** A machine in memory with the real loop, journal, outbox and client; `fetch` reaches the API. */
export class SimNode {
  readonly kernel: SimKernel;
  readonly problems: Problem[] = [];
  pods: SimPod[] = [];
  kubeletConfiguration: Record<string, unknown> = {};
  /** False: the pods cannot be listed at the moment. */
  podsReadable = true;
  readonly #hierarchy: Hierarchy;
  readonly #version: 1 | 2;
  readonly #clock: SimClock;
  readonly #dir: string;
  readonly #fetch: (request: Request) => Promise<Response>;
  #boot = 1;
  #sequence = 0;
  #journal: Journal;
  #client: ApiClient;

  constructor(version: 1 | 2, clock: SimClock, dir: string, fetch: (request: Request) => Promise<Response>) {
    ({ kernel: this.kernel, hierarchy: this.#hierarchy } = simulated(version));
    this.#version = version;
    this.#clock = clock;
    this.#dir = dir;
    this.#fetch = fetch;
    this.#journal = this.#openJournal();
    this.#client = this.#openClient();
  }

  get outboxSize(): number {
    return Outbox.open(join(this.#dir, "outbox.jsonl")).size;
  }

  pass(): Promise<PassReport> {
    return runPass(this.#ports(), SETTINGS, ++this.#sequence);
  }

  /**
   * Runs a pass in which the daemon dies before its `after`-th change of a cgroup; the next start recovers. Returns
   * whether the daemon died.
   */
  async passAndDie(after: number): Promise<boolean> {
    try {
      await cutShort(this.kernel, after, () => this.pass());
      return false;
    } catch (e) {
      if (!(e instanceof Killed)) throw e;
      await this.restart();
      return true;
    }
  }

  async restart(): Promise<void> {
    this.#journal = this.#openJournal();
    this.#client = this.#openClient();
    await recover(this.#journal, this.#hierarchy, this.#bootId);
  }

  /** Removes all cgroups and keeps the state directory. */
  async reboot(): Promise<void> {
    this.#boot++;
    for (const top of this.kernel.tops.values()) top.children.clear();
    await this.restart();
  }

  get #bootId(): string {
    return `boot-${this.#boot}`;
  }
  #openJournal(): Journal {
    const journal = Journal.open(join(this.#dir, "journal.jsonl"), this.#bootId);
    if (!journal.ok) throw new Error(journal.error.message);
    return journal.value;
  }
  #openClient(): ApiClient {
    const access = { url: "http://api.sim", token: undefined, timeoutMs: 1000, fetch: this.#fetch };
    const memory = new FactsStore(this.#dir, (message) => this.problems.push({ from: "memory", message }));
    return new ApiClient(access, Outbox.open(join(this.#dir, "outbox.jsonl")), memory, (p) => this.problems.push(p));
  }
  #ports(): LoopDeps {
    return {
      observeMachine: () => machineAt(this.#clock.iso, this.#bootId, this.#version),
      readPods: async () =>
        this.podsReadable
          ? podsRead(this.pods)
          : {
              pods: null,
              whole: false,
              problems: [{ from: "pods", message: "the kubelet does not answer" }],
              notices: [],
            },
      readConfiguration: async () => ok(this.kubeletConfiguration),
      readStateFiles: () => ({ assignments: undefined, missing: [] }),
      client: this.#client,
      hierarchy: this.#hierarchy,
      journal: this.#journal,
    };
  }
}
