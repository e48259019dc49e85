import { err, ok, type Result } from "../../api/model/result.ts";
import type { ActuatorConfig } from "../config.ts";
import type { PodEvent } from "../lifecycle/event.ts";
import type { PassReport } from "../loop.ts";
import type { Problem } from "../ports.ts";
import { EventRing } from "../status/events.ts";
import type { NodeStatus } from "../status/node-status.ts";
import { measured, PassCounter, type TurnFigures } from "../status/pass-figures.ts";
import type { StatusServer } from "../status/server.ts";
import { StatusFile } from "../status/status-file.ts";
import type { Turns } from "../turns.ts";
import { refusalOf } from "./desired-pods.ts";
import { drained } from "./drain.ts";
import type { TurnView } from "./manager.ts";
import { nodeView } from "./node-view.ts";
import { type OpenPods, openPods, type PodsShared } from "./open-pods.ts";
import { nameIn } from "./pod-set.ts";

export interface PodsDaemonOptions {
  readonly config: ActuatorConfig;
  readonly onPass: (report: PassReport) => void;
  readonly onProblem: (problem: Problem) => void;
  readonly onEvent?: (event: PodEvent) => void;
  readonly reclaim?: (functions: readonly string[]) => Promise<void>;
}
/** How long work that is under way may take to come to its next step at the end. */
const REST_MS = 10_000;
/** So long nobody is answered until the first look has ended: before it all that one could say is that nothing was seen. */
const FIRST_LOOK_MS = 3000;

/** Runs turns until told to stop, and tells people what it sees. */
export class PodsDaemon {
  readonly #options: PodsDaemonOptions;
  readonly #turns: Turns;
  readonly #pods: OpenPods;
  readonly #ring: EventRing;
  readonly #counter: PassCounter;
  readonly #file: StatusFile;
  #server: Pick<StatusServer, "close"> | null = null;
  #pass: PassReport | null = null;
  #view: TurnView | null = null;
  #turn: TurnFigures | null = null;

  private constructor(options: PodsDaemonOptions, turns: Turns, pods: OpenPods, ring: EventRing) {
    this.#options = options;
    this.#turns = turns;
    this.#counter = new PassCounter(turns.metrics.counters);
    this.#pods = pods;
    this.#ring = ring;
    const onProblem = (message: string): void => options.onProblem({ from: "pods", message });
    this.#file = new StatusFile({ stateDir: options.config.stateDir, onProblem });
  }

  /** Errors: the runtime's endpoint, the records. That nobody can be told of the status is a problem, and no error. */
  static async open(shared: PodsShared, options: PodsDaemonOptions, turns: Turns): Promise<Result<PodsDaemon, string>> {
    const { onProblem, onEvent, onPass, reclaim } = options;
    const { counters } = turns.metrics;
    let daemon: PodsDaemon | undefined;
    const ring = new EventRing(undefined, counters.eventsDropped);
    const opened = await openPods(shared, options.config, {
      counters,
      onEvent: (event) => {
        ring.add(event);
        onEvent?.(event);
      },
      onProblem,
      onPass: (report) => {
        daemon?.notePass(report);
        onPass(report);
      },
      onWorked: () => turns.pace.wake(),
      ...(reclaim === undefined ? {} : { reclaim }),
    });
    if (!opened.ok) return err(opened.error);
    daemon = new PodsDaemon(options, turns, opened.value, ring);
    return ok(daemon);
  }

  status(): NodeStatus {
    const { config } = this.#options;
    const { manager, stats, version, devices, probes, faults } = this.#pods;
    return nodeView({
      nowMs: Date.now(),
      nodeName: config.nodeName,
      set: manager.set,
      runtime: version.current,
      turn: this.#turn,
      pass: this.#pass,
      usages: stats.usages,
      probes: probes.rows(),
      devices: devices?.rows((uid) => nameIn(manager.set, uid)),
      problems: [
        ...this.#turns.notices.ofSettings,
        ...faults(),
        ...probes.problems(),
        ...(this.#view?.problems ?? []),
        ...(this.#view?.notices ?? []),
      ],
      refused: this.#view?.refused ?? [],
      events: this.#ring.list(),
    });
  }

  async runUntil(stop: AbortSignal): Promise<void> {
    const { config } = this.#options;
    for (let turn = this.#firstTurn; !stop.aborted; turn = this.#turnOnce) {
      await turn.call(this);
      await this.#turns.pace.sleep(config.syncSeconds * 1000);
    }
    if (config.drain) await drained(this.#pods.manager, () => this.#turnOnce());
    await this.#end();
  }

  /** People are answered after it, or soon if a runtime that hangs holds it up. */
  async #firstTurn(): Promise<void> {
    const { onProblem } = this.#options;
    const turned = this.#turnOnce();
    await withinMs(turned, FIRST_LOOK_MS);
    const told = (message: string): void => onProblem({ from: "pods", message });
    this.#server = await this.#turns.metrics.serve(() => this.status(), told);
    await turned;
  }

  async #turnOnce(): Promise<void> {
    const { manager, version } = this.#pods;
    const { notices, metrics } = this.#turns;
    const { value: turned, ...times } = await measured(() => manager.turn());
    const view = { ...turned, notices: [...turned.notices, ...this.#pods.notices()] };
    await version.look(view.hears);
    this.#view = view;
    this.#turn = { sequence: view.sequence, at: new Date().toISOString(), ...times };
    metrics.counters.pass(times.tookMs, times.cpuMs);
    notices.tell("pass", [...view.problems, ...view.notices, ...view.refused.map(refusalOf)]);
    this.#file.offer(() => this.status());
  }

  private notePass(report: PassReport): void {
    // a snapshot is large, and nobody looks at it again
    this.#pass = { ...report, snapshot: null };
    this.#counter.count(report);
  }

  async #end(): Promise<void> {
    this.#pods.manager.stop();
    await withinMs(this.#pods.manager.rest(), REST_MS);
    await this.#file.close(this.status());
    await this.#server?.close();
    await this.#pods.close();
  }
}

/** Settles with the work, or after that time. */
async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
