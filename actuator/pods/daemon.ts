import { err, ok, type Result } from "../../api/model/result.ts";
import type { ActuatorConfig } from "../config.ts";
import type { PodEvent } from "../lifecycle/event.ts";
import type { PassReport } from "../loop.ts";
import type { Problem } from "../ports.ts";
import { type Counters, noCounters } from "../status/counters.ts";
import { EventRing } from "../status/events.ts";
import { DEFAULT_STATUS_LISTEN } from "../status/listen.ts";
import type { NodeStatus } from "../status/node-status.ts";
import { openServer } from "../status/open-server.ts";
import type { StatusServer } from "../status/server.ts";
import { StatusFile } from "../status/status-file.ts";
import { drained } from "./drain.ts";
import type { TurnView } from "./manager.ts";
import { nodeView } from "./node-view.ts";
import { type OpenPods, openPods, type PodsShared } from "./open-pods.ts";

export interface PodsDaemonOptions {
  readonly config: ActuatorConfig;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onEvent?: (event: PodEvent) => void;
  readonly reclaim?: (functions: readonly string[]) => Promise<void>;
}
/** How long work that is under way may take to come to its next step at the end. */
const REST_MS = 10_000;

/** Runs turns until told to stop, and tells people what it sees. */
export class PodsDaemon {
  readonly #options: PodsDaemonOptions;
  readonly #pods: OpenPods;
  readonly #ring: EventRing;
  readonly #file: StatusFile;
  readonly #standing = new Set<string>();
  #counters: Counters = noCounters;
  #server: StatusServer | null = null;
  #pass: PassReport | null = null;
  #view: TurnView | null = null;
  #turn: { sequence: number; at: string; cpuMs: number; tookMs: number } | null = null;
  #wake: () => void = () => {};
  #isWoken = false;

  private constructor(options: PodsDaemonOptions, pods: OpenPods, ring: EventRing) {
    this.#options = options;
    this.#pods = pods;
    this.#ring = ring;
    const { stateDir } = options.config;
    this.#file = new StatusFile({ stateDir, onProblem: (message) => this.#tell({ from: "pods", message }) });
  }

  /** Errors: the runtime's endpoint, the records. That nobody can be told of the status is a problem, and no error. */
  static async open(shared: PodsShared, options: PodsDaemonOptions): Promise<Result<PodsDaemon, string>> {
    let daemon: PodsDaemon | undefined;
    const ring = new EventRing(undefined, (n) => daemon?.dropped(n));
    const opened = await openPods(shared, options.config, {
      onEvent: (event) => {
        ring.add(event);
        options.onEvent?.(event);
      },
      onProblem: options.onProblem,
      onPass: (report) => {
        daemon?.notePass(report);
        options.onPass(report);
      },
      onWorked: () => daemon?.poke(),
      ...(options.reclaim === undefined ? {} : { reclaim: options.reclaim }),
    });
    if (!opened.ok) return err(opened.error);
    daemon = new PodsDaemon(options, opened.value, ring);
    await daemon.#listen();
    return ok(daemon);
  }

  status(): NodeStatus {
    const { config } = this.#options;
    return nodeView({
      nowMs: Date.now(),
      nodeName: config.nodeName,
      set: this.#pods.manager.set,
      runtime: this.#view?.hears === true ? { name: "containerd", version: "" } : null,
      turn: this.#turn,
      pass: this.#pass,
      usages: this.#pods.stats.usages,
      problems: [...(this.#view?.problems ?? []), ...(this.#view?.notices ?? [])],
      refused: this.#view?.refused ?? [],
      events: this.#ring.list(),
    });
  }

  async runUntil(stop: AbortSignal): Promise<void> {
    const { config } = this.#options;
    stop.addEventListener("abort", () => this.poke(), { once: true });
    for (let sequence = 1; !stop.aborted; sequence++) {
      await this.#turnOnce(sequence);
      await this.#pause(config.syncSeconds * 1000);
    }
    if (config.drain) await drained(this.#pods.manager, () => this.#turnOnce((this.#turn?.sequence ?? 0) + 1));
    await this.#end();
  }

  async #turnOnce(sequence: number): Promise<void> {
    const [from, cpu] = [performance.now(), process.cpuUsage()];
    const view = await this.#pods.manager.turn();
    const { user, system } = process.cpuUsage(cpu);
    const cpuMs = (user + system) / 1000;
    this.#view = view;
    this.#turn = { sequence, at: new Date().toISOString(), cpuMs, tookMs: performance.now() - from };
    this.#counters.pass(this.#turn.tookMs, cpuMs);
    this.#tellNew([...view.problems, ...view.notices]);
    this.#file.offer(() => this.status());
  }

  private notePass(report: PassReport): void {
    // a snapshot is large, and nobody looks at it again
    this.#pass = { ...report, snapshot: null };
    this.#counters.wrote(report.applied?.results.filter(({ status }) => status === "applied").length ?? 0);
    for (const { cause } of report.drift) this.#counters.drifted(cause, 1);
    if (report.decidedBy !== null) this.#counters.decided("cgroups", report.decidedBy);
  }

  private dropped(events: number): void {
    this.#counters.eventsDropped(events);
  }

  /** A problem that stands is told once. */
  #tellNew(problems: readonly Problem[]): void {
    const now = new Set(problems.map(({ from, message }) => `${from}: ${message}`));
    for (const problem of problems) {
      const text = `${problem.from}: ${problem.message}`;
      if (!this.#standing.has(text)) this.#options.onProblem(problem);
      this.#standing.add(text);
    }
    for (const text of this.#standing) if (!now.has(text)) this.#standing.delete(text);
  }
  #tell(problem: Problem): void {
    this.#options.onProblem(problem);
  }

  /** The next turn is now. */
  poke(): void {
    this.#isWoken = true;
    this.#wake();
  }
  #pause(ms: number): Promise<void> {
    if (this.#isWoken) {
      this.#isWoken = false;
      return new Promise((resolve) => setImmediate(resolve));
    }
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      this.#wake = done;
      const self = this;
      function done(): void {
        clearTimeout(timer);
        self.#wake = () => {};
        self.#isWoken = false;
        resolve();
      }
    });
  }

  async #listen(): Promise<void> {
    const { config } = this.#options;
    const opened = await openServer(
      config.statusListen ?? DEFAULT_STATUS_LISTEN,
      config,
      () => this.status(),
      (message) => this.#tell({ from: "pods", message }),
    );
    this.#counters = opened.counters;
    this.#server = opened.server;
  }

  async #end(): Promise<void> {
    this.#pods.manager.stop();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, REST_MS);
    });
    await Promise.race([this.#pods.manager.rest(), late]);
    clearTimeout(timer);
    await this.#file.close(this.status());
    await this.#server?.close();
    await this.#pods.close();
  }
}
