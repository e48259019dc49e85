import { type PassReport, runPass } from "./loop.ts";
import type { ActuatorOptions } from "./main.ts";
import { observedPods } from "./pods/observed-pods.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import type { NodeStatus, PodRow } from "./status/node-status.ts";
import { measured, PassCounter, passFigures, type TurnFigures } from "./status/pass-figures.ts";
import type { StatusServer } from "./status/server.ts";
import { StatusFile } from "./status/status-file.ts";
import type { Turns } from "./turns.ts";

type Options = Pick<ActuatorOptions, "config" | "onPass" | "onProblem">;

/** Passes over the cgroups of pods that others run, again and again, and tells people what it sees. */
export class Observer {
  readonly #ports: LoopPorts;
  readonly #options: Options;
  readonly #turns: Turns;
  readonly #counter: PassCounter;
  readonly #file: StatusFile;
  #server: Pick<StatusServer, "close"> | null = null;
  #pass: NodeStatus["pass"] = null;
  #pods: readonly PodRow[] = [];
  #problems: readonly Problem[] = [];

  private constructor(ports: LoopPorts, options: Options, turns: Turns) {
    this.#ports = ports;
    this.#options = options;
    this.#turns = turns;
    this.#counter = new PassCounter(turns.metrics.counters);
    const onProblem = (message: string): void => options.onProblem({ from: "pods", message });
    this.#file = new StatusFile({ stateDir: options.config.stateDir, onProblem });
  }

  static async open(ports: LoopPorts, options: Options, turns: Turns): Promise<Observer> {
    const observer = new Observer(ports, options, turns);
    const told = (message: string): void => options.onProblem({ from: "pods", message });
    observer.#server = await turns.metrics.serve(() => observer.status(), told);
    return observer;
  }

  status(): NodeStatus {
    const { nodeName, mode } = this.#options.config;
    return {
      at: new Date().toISOString(),
      nodeName,
      pid: process.pid,
      mode,
      runsPods: false,
      runtime: null,
      pass: this.#pass,
      pods: this.#pods,
      problems: [
        ...new Set(
          [...this.#turns.notices.ofSettings, ...this.#problems].map(({ from, message }) => `${from}: ${message}`),
        ),
      ],
      refusedManifests: [],
      events: [],
    };
  }

  async runUntil(stop: AbortSignal): Promise<void> {
    const { config, onPass, onProblem } = this.#options;
    const { notices, pace } = this.#turns;
    for (let sequence = 1; !stop.aborted; sequence++) {
      const { value: report, ...times } = await measured(() => runPass(this.#ports, config, sequence));
      this.#note(report, { sequence, at: report.at, ...times });
      for (const problem of report.problems) onProblem(problem);
      notices.tell("pass", report.notices, report.problems);
      onPass(report);
      this.#file.offer(() => this.status());
      await pace.sleep(config.intervalSeconds * 1000);
    }
    await this.#file.close(this.status());
    await this.#server?.close();
  }

  #note(report: PassReport, turn: TurnFigures): void {
    this.#pass = { ...turn, ...passFigures(report) };
    this.#problems = [...report.problems, ...report.notices];
    // what could not be read is not gone
    if (report.snapshot !== null) this.#pods = observedPods(report);
    this.#turns.metrics.counters.pass(turn.tookMs, turn.cpuMs);
    this.#counter.count(report);
  }
}
