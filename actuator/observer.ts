import { type PassReport, runPass } from "./loop.ts";
import type { ActuatorOptions } from "./main.ts";
import type { Notices } from "./notices.ts";
import type { Pace } from "./pace.ts";
import { observedPods } from "./pods/observed-pods.ts";
import type { LoopPorts, Problem } from "./ports.ts";
import { noCounters } from "./status/counters.ts";
import type { NodeStatus, PodRow } from "./status/node-status.ts";
import { type OpenServer, openServer } from "./status/open-server.ts";
import { StatusFile } from "./status/status-file.ts";

type Options = Pick<ActuatorOptions, "config" | "onPass" | "onProblem">;

/** Passes over the cgroups of pods that others run, again and again, and tells people what it sees. */
export class Observer {
  readonly #ports: LoopPorts;
  readonly #options: Options;
  readonly #notices: Notices;
  readonly #file: StatusFile;
  #told: OpenServer = { counters: noCounters, server: null };
  #pass: NodeStatus["pass"] = null;
  #pods: readonly PodRow[] = [];
  #problems: readonly Problem[] = [];

  private constructor(ports: LoopPorts, options: Options, notices: Notices) {
    this.#ports = ports;
    this.#options = options;
    this.#notices = notices;
    const onProblem = (message: string): void => options.onProblem({ from: "pods", message });
    this.#file = new StatusFile({ stateDir: options.config.stateDir, onProblem });
  }

  static async open(ports: LoopPorts, options: Options, notices: Notices): Promise<Observer> {
    const observer = new Observer(ports, options, notices);
    const { config, onProblem } = options;
    const told = (message: string): void => onProblem({ from: "pods", message });
    observer.#told = await openServer(config.statusListen ?? "off", config, () => observer.status(), told);
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
      problems: [...new Set(this.#problems.map(({ from, message }) => `${from}: ${message}`))],
      refusedManifests: [],
      events: [],
    };
  }

  async runUntil(stop: AbortSignal, pace: Pace): Promise<void> {
    const { config, onPass, onProblem } = this.#options;
    for (let sequence = 1; !stop.aborted; sequence++) {
      const [from, cpu] = [performance.now(), process.cpuUsage()];
      const report = await runPass(this.#ports, config, sequence);
      const { user, system } = process.cpuUsage(cpu);
      this.#note(report, sequence, performance.now() - from, (user + system) / 1000);
      for (const problem of report.problems) onProblem(problem);
      this.#notices.tell("pass", report.notices, report.problems);
      onPass(report);
      this.#file.offer(() => this.status());
      await pace.sleep(config.intervalSeconds * 1000);
    }
    await this.#file.close(this.status());
    await this.#told.server?.close();
  }

  #note(report: PassReport, sequence: number, tookMs: number, cpuMs: number): void {
    const { at, drift, decidedBy, applied, problems, notices } = report;
    const wrote = applied?.results.filter(({ status }) => status === "applied").length ?? 0;
    this.#pass = { sequence, at, cpuMs, tookMs, wrote, drift: drift.length, decidedBy };
    this.#problems = [...problems, ...notices];
    // what could not be read is not gone
    if (report.snapshot !== null) this.#pods = observedPods(report);
    const { counters } = this.#told;
    counters.pass(tookMs, cpuMs);
    counters.wrote(wrote);
    for (const { cause } of drift) counters.drifted(cause, 1);
    if (decidedBy !== null) counters.decided("cgroups", decidedBy);
  }
}
