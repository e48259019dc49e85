import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeStatus, PodRow } from "../../../actuator/status/node-status.ts";
import { isNamed, isUp } from "../pods/daemon.ts";

/** Generous, for an emulated machine on a busy host. */
const WAIT_MS = 240_000;
/** Each check takes the only processor away from the work that the test waits for. */
const LOOK_MS = 1000;

/** The status of a daemon in the guest. */
export class GuestStatus {
  readonly #listen: string;

  constructor(listen: string) {
    this.#listen = listen;
  }

  /** Undefined: the daemon is too busy to answer, or it does not run. */
  async status(): Promise<NodeStatus | undefined> {
    try {
      // not fetch, which needs WebAssembly: --jitless disables it
      const [answer] = (await once(get(`http://${this.#listen}/v1/status`), "response")) as [IncomingMessage];
      return (await json(answer)) as NodeStatus;
    } catch {
      return undefined;
    }
  }
  /** Waits until `find` returns a result for the status, and returns the result. */
  until<T>(what: string, find: (status: NodeStatus) => T | undefined): Promise<T> {
    return this.wait(what, async () => {
      const status = await this.status();
      return status === undefined ? undefined : find(status);
    });
  }
  async wait<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
    for (const deadline = Date.now() + WAIT_MS; ; await sleep(LOOK_MS)) {
      const found = await look();
      if (found !== undefined) return found;
      if (Date.now() > deadline) throw new Error(`waited too long for ${what}`);
    }
  }
  pod(name: string, what: string, is: (row: PodRow) => boolean): Promise<PodRow> {
    return this.until(`${name} ${what}`, ({ pods }) => pods.find((row) => isNamed(row, name) && is(row)));
  }
  running(name: string): Promise<PodRow> {
    return this.pod(name, "running", isUp);
  }
}
