import type { NodeStatus, PodRow } from "../../../actuator/status/node-status.ts";
import type { RunOptions } from "../../cli/run.ts";
import { DaemonChild } from "../daemon-child.ts";
import { NODE_NAME } from "./manifest.ts";
import { holds, until } from "./until.ts";

/** A line of the daemon's log that reports an event. */
export interface LoggedEvent {
  readonly at: string;
  readonly reason: string;
  readonly msg: string;
  readonly pod: string;
  readonly uid: string;
  readonly container?: string;
}

/** A daemon that runs pods, with its log and its status. */
export class DaemonProcess extends DaemonChild {
  readonly events: LoggedEvent[] = [];
  /** Log lines that are not events. */
  readonly lines: string[] = [];
  readonly #url: string;

  constructor(settings: string, url: string, options: RunOptions = {}) {
    super(["--settings", settings, "--log-format", "json"], "stderr", options);
    this.#url = url;
  }

  /** Undefined: the daemon does not answer, or the answer is another daemon's. */
  async status(): Promise<NodeStatus | undefined> {
    try {
      const answer = await fetch(`${this.#url}/v1/status`, { signal: AbortSignal.timeout(10_000) });
      const status = (await answer.json()) as NodeStatus;
      return status.pid === this.child.pid ? status : undefined;
    } catch {
      return undefined;
    }
  }

  /** Waits until `find` returns a result for the daemon's status, and returns the result. */
  async until<T>(what: string, find: (status: NodeStatus) => T | undefined): Promise<T> {
    let last: NodeStatus | undefined;
    const look = async (): Promise<T | undefined> => {
      if (this.isEnded) throw new Error(`the daemon has ended, before ${what}:\n${this.#report(last)}`);
      const status = await this.status();
      last = status ?? last;
      return status === undefined ? undefined : find(status);
    };
    return until(what, look, () => this.#report(last));
  }
  /** Waits for this many whole turns that began after the call. */
  async turns(count: number): Promise<void> {
    const before = await this.until("a turn", ({ pass }) => pass?.sequence);
    await this.until(`${count} turns more`, ({ pass }) => holds((pass?.sequence ?? 0) > before + count));
  }
  /** A pod's row, as soon as `is` returns true for it. */
  pod(name: string, what: string, is: (row: PodRow) => boolean): Promise<PodRow> {
    return this.until(`${name} ${what}`, ({ pods }) => pods.find((row) => isNamed(row, name) && is(row)));
  }
  /** The rows of these pods, as soon as all their containers are running and ready. */
  running(...names: readonly string[]): Promise<readonly PodRow[]> {
    return Promise.all(names.map((name) => this.pod(name, "running", isUp)));
  }
  gone(...names: readonly string[]): Promise<true> {
    return this.until(`the end of ${names}`, ({ pods }) =>
      pods.some((row) => names.some((name) => isNamed(row, name))) ? undefined : true,
    );
  }
  /** An event of a pod, given by its name or uid, as soon as the daemon has logged it. */
  event(name: string, reason: string, message?: string | RegExp): Promise<LoggedEvent> {
    const isIt = ({ msg }: LoggedEvent): boolean =>
      message === undefined || (typeof message === "string" ? msg === message : message.test(msg));
    return until(
      `event ${reason} of ${name}`,
      () => this.eventsOf(name, reason).find(isIt),
      () => this.#report(),
    );
  }
  eventsOf(name: string, reason?: string): readonly LoggedEvent[] {
    return this.events.filter(
      (event) =>
        (event.uid === name || isNamed({ name: event.pod }, name)) && (reason === undefined || event.reason === reason),
    );
  }

  /** Throws if the daemon exits, or if nothing else happens first. */
  async untilEnd(before: string): Promise<never> {
    await until(
      `the daemon's coming to ${before}`,
      () => this.isEnded || undefined,
      () => this.#report(),
    );
    throw new Error(`the daemon has ended before ${before}:\n${this.#report()}`);
  }

  protected override read(line: string): void {
    const entry = line.startsWith("{") ? (JSON.parse(line) as { about?: string }) : {};
    if (entry.about === "event") this.events.push(entry as LoggedEvent);
    else this.lines.push(line);
  }
  #report(status?: NodeStatus): string {
    const rows = (status?.pods ?? []).map(({ name, state, phase, reason, message, containers }) => {
      const each = containers.map((c) => `${c.name}=${c.state}/${c.reason}/${c.restarts}`);
      return `  ${name} ${state} ${phase} ${reason}: ${message} [${each.join(" ")}]`;
    });
    const events = this.events.slice(-20).map(({ at, pod, reason, msg }) => `  ${at} ${pod} ${reason}: ${msg}`);
    return [...rows, ...(status?.problems ?? []), ...events, ...this.lines.slice(-10), this.rest].join("\n");
  }
}

/** The name of a manifest's pod ends with the node's name. */
export const isNamed = ({ name }: { readonly name: string }, wanted: string): boolean =>
  name === wanted || name === `${wanted}-${NODE_NAME}`;
export const isUp = ({ state, containers }: PodRow): boolean =>
  state === "active" &&
  containers.every((one) =>
    one.kind === "init" ? one.state === "terminated" && one.exitCode === 0 : one.state === "running" && one.ready,
  );
