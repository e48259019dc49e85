import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { RuntimeContainer, RuntimePod } from "../../../actuator/containerd/cri.ts";
import { type LogFilter, LogLines } from "../../../actuator/pods/logs/lines.ts";
import { LogReader } from "../../../actuator/pods/logs/read.ts";
import { ok, type Result } from "../../base/result.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome } from "../terminal.ts";
import type { LogsFlags } from "./find.ts";
import { ask, containerOf, findPod, instancesOf, nameOf, runtimePods, withRuntime } from "./find.ts";

/** How often the log is read and the runtime's containers are listed. */
const LOG_MS = 200;
const RUNTIME_MS = 1000;
/** How often the log of an ended container is read again: its last output, also after a rotation, may be written after its end. */
const LAST_READS = 4;

/** Prints what a pod's containers wrote, to the same streams. */
export async function logs(wanted: string, given: LogsFlags, cli: Cli): Promise<Outcome> {
  return withRuntime(given, cli, async (connection, at) => {
    const pod = await findPod(connection, wanted, at);
    if (!pod.ok) return pod;
    const chosen = given.allContainers === true ? ok(null) : await containerOf(pod.value, given, cli);
    if (!chosen.ok) return chosen;
    const names = chosen.value === null ? [...instancesOf(pod.value).keys()] : [chosen.value];
    const show = (name: string): Promise<Outcome> => new ContainerLogs(connection, pod.value, name, given, cli).show();
    const ends: Outcome[] = [];
    if (given.follow) ends.push(...(await Promise.all(names.map(show))));
    else for (const name of names) ends.push(await show(name));
    return ends.find(({ ok: isOk }) => !isOk) ?? ok(EXIT.ok);
  });
}

/** The logs of one container of a pod, and of its next instances. */
class ContainerLogs {
  readonly #connection: Connection;
  readonly #name: string;
  readonly #given: LogsFlags;
  readonly #cli: Cli;
  readonly #lines: LogLines;
  readonly #pod: RuntimePod;

  constructor(connection: Connection, pod: RuntimePod, name: string, given: LogsFlags, cli: Cli) {
    const { limitBytes, timestamps, prefix } = given;
    this.#connection = connection;
    this.#pod = pod;
    this.#name = name;
    this.#given = given;
    this.#cli = cli;
    this.#lines = new LogLines({
      write: (stream, bytes) => written(stream === "stdout" ? process.stdout : process.stderr, bytes),
      ...sinceOf(given),
      ...(timestamps === undefined ? {} : { timestamps }),
      ...(limitBytes === undefined ? {} : { limitBytes }),
      ...(prefix === true ? { prefix: `[pod/${pod.name}/${name}] ` } : {}),
    });
  }

  async show(): Promise<Outcome> {
    const first = this.#first();
    if (!first.ok) return first;
    const { tail, follow, previous } = this.#given;
    const isFollowing = follow === true && previous !== true;
    let filter: LogFilter = { ...sinceOf(this.#given), ...(tail < 0 ? {} : { tail }) };
    for (let next: RuntimeContainer | null = first.value; next !== null; ) {
      const shown = await this.#showOne(next, filter, isFollowing);
      if (!shown.ok || !isFollowing || !this.#lines.wantsMore) return shown;
      next = await this.#nextAfter(next);
      // from now on, all lines are shown
      filter = {};
    }
    return ok(EXIT.ok);
  }

  /** The container whose log is shown first. kubelet 1.36: validateContainerLogStatus, with its messages. */
  #first(): Result<RuntimeContainer, Fault> {
    const all = instancesOf(this.#pod).get(this.#name) ?? [];
    const [newest, before] = all.filter(({ state }) => state !== "created");
    const of = `container "${printable(this.#name)}" in pod "${nameOf(this.#pod)}"`;
    if (this.#given.previous !== true)
      return newest === undefined ? fault(EXIT.failed, `${of} is waiting to start`) : ok(newest);
    // if the container has ended and its pod runs, the next instance is followed
    const isBetween = newest?.state === "exited" && this.#pod.sandboxes[0]?.isReady === true;
    const previous = isBetween ? newest : before;
    return previous === undefined ? fault(EXIT.failed, `previous terminated ${of} not found`) : ok(previous);
  }

  async #showOne(container: RuntimeContainer, filter: LogFilter, isFollowing: boolean): Promise<Outcome> {
    const status = await ask(this.#connection, "ContainerStatus", { containerId: container.id });
    if (!status.ok) return status;
    const path = status.value.status?.logPath ?? "";
    if (path === "") return fault(EXIT.failed, `the runtime reports no log of container \`${printable(this.#name)}\``);
    const reader = new LogReader(path, filter, this.#lines);
    try {
      await reader.readAll();
      if (isFollowing) await this.#follow(reader, container.id);
      return ok(EXIT.ok);
    } catch (error) {
      return fault(
        EXIT.failed,
        `the log of container \`${printable(this.#name)}\`, ${printable(path)}: ${whyUnread(error)}`,
      );
    } finally {
      await reader.close();
    }
  }

  /** Follows the log until the container has ended and its last output has been read. */
  async #follow(reader: LogReader, containerId: string): Promise<void> {
    let askedAt = Number.NEGATIVE_INFINITY;
    for (let left = Number.POSITIVE_INFINITY; left > 0 && this.#lines.wantsMore; left--) {
      const now = performance.now();
      if (now - askedAt >= RUNTIME_MS && left > LAST_READS) {
        askedAt = now;
        if (await this.#hasEnded(containerId)) left = LAST_READS;
      }
      await reader.readMore();
      await sleep(LOG_MS);
    }
  }
  /** Whether the container has ended; if the runtime does not respond, it may still run. */
  async #hasEnded(containerId: string): Promise<boolean> {
    const answer = await this.#connection.call("ContainerStatus", { containerId });
    if (!answer.ok) return answer.error.code === "NOT_FOUND";
    return answer.value.status?.state !== "CONTAINER_RUNNING";
  }

  /** The next instance once it has started; null if there will be none. */
  async #nextAfter(last: RuntimeContainer): Promise<RuntimeContainer | null> {
    for (let looks = 0; ; looks++) {
      const held = await runtimePods(this.#connection);
      const pod = held.ok ? held.value.get(this.#pod.uid) : this.#pod;
      if (pod === undefined) return null;
      const all = instancesOf(pod).get(this.#name) ?? [];
      const newer = all.filter(({ attempt, state }) => attempt > last.attempt && state !== "created");
      const next = newer.at(-1);
      if (next !== undefined) return next;
      if (!pod.sandboxes[0]?.isReady) return null;
      if (looks === 1 && this.#given.allContainers !== true)
        this.#cli.terminal.warn(`nodewise: container ${this.#name} has ended: waiting for its next start`);
      await sleep(RUNTIME_MS);
    }
  }
}

function whyUnread(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  if (code === "ENOENT") return "it does not exist, and may have been removed";
  return code === "ELOOP" ? "it is a link, which is not followed" : message;
}

const sinceOf = ({ since, sinceTime }: LogsFlags) => {
  const sinceNanos = since === undefined ? sinceTime : BigInt(Math.round(Date.now() - since)) * 1_000_000n;
  return sinceNanos === undefined ? {} : { sinceNanos };
};

/** Waits for a slow reader, so that at most one piece is buffered. */
async function written(stream: NodeJS.WriteStream, bytes: Buffer): Promise<void> {
  if (!stream.write(bytes)) await new Promise((resolve) => stream.once("drain", resolve));
}
