import { constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { faultText } from "../core/error-text.ts";
import type { NodeStatus } from "./node-status.ts";

export const statusFile = (stateDir: string): string => join(stateDir, "status.json");

/** The file with the reason why the last start failed, beside the status of the last daemon that ran. */
export const refusalFile = (stateDir: string): string => join(stateDir, "refused.json");
export interface Refused {
  readonly at: string;
  readonly message: string;
}
/** Null: the daemon has started. A failed write is ignored, since the log has the message too. */
export async function persistRefusal(stateDir: string, message: string | null): Promise<void> {
  const refused: Refused = { at: new Date().toISOString(), message: message ?? "" };
  const file = refusalFile(stateDir);
  const kept = message === null ? rm(file, { force: true }) : replace(file, `${JSON.stringify(refused)}\n`, true);
  await kept.catch(() => {});
}

const EVERY_MS = 5000;
const AT_LEAST_EVERY_MS = 60_000;
const OWNER_ONLY = 0o600;

interface StatusFileOptions {
  readonly stateDir: string;
  /** Called once when writing fails, and again only after it has worked. */
  readonly onProblem: (message: string) => void;
  /** Milliseconds that only grow. */
  readonly now?: () => number;
}

/**
 * The last NodeStatus, for when the daemon does not run. The file is replaced atomically. Writing never delays a pass, and a
 * failure has no other effect.
 */
export class StatusFile {
  readonly #file: string;
  readonly #onProblem: (message: string) => void;
  readonly #now: () => number;
  #comparedMs = Number.NEGATIVE_INFINITY;
  #writtenMs = Number.NEGATIVE_INFINITY;
  /** The state that was written last. */
  #state = "";
  #under: Promise<void> = Promise.resolve();
  #isUnderWay = false;
  #isBroken = false;

  constructor({ stateDir, onProblem, now = () => performance.now() }: StatusFileOptions) {
    this.#file = statusFile(stateDir);
    this.#onProblem = onProblem;
    this.#now = now;
  }

  /** Call it as often as there may be something new: it is looked at each 5 s, and written if it is new or a minute old. */
  offer(status: () => NodeStatus): void {
    const now = this.#now();
    if (this.#isUnderWay || now - this.#comparedMs < EVERY_MS) return;
    this.#comparedMs = now;
    const last = status();
    const state = stateOf(last);
    if (state === this.#state && now - this.#writtenMs < AT_LEAST_EVERY_MS && !this.#isBroken) return;
    this.#state = state;
    this.#writtenMs = now;
    this.#isUnderWay = true;
    this.#under = this.#write(last, false).finally(() => {
      this.#isUnderWay = false;
    });
  }

  /** The last one: on disk when it settles. */
  async close(status: NodeStatus): Promise<void> {
    await this.#under;
    await this.#write(status, true);
  }

  async #write(status: NodeStatus, sync: boolean): Promise<void> {
    try {
      await replace(this.#file, `${JSON.stringify(status)}\n`, sync);
      this.#isBroken = false;
    } catch (error) {
      if (!this.#isBroken) this.#onProblem(`${this.#file}: ${faultText(error, "write")}`);
      this.#isBroken = true;
    }
  }
}

/** The status without what changes each time: times and measured values. */
const stateOf = ({ at: _at, pass, pods, devices, probes, ...rest }: NodeStatus): string =>
  JSON.stringify({
    ...rest,
    pass: pass === null ? null : { wrote: pass.wrote, drift: pass.drift, decidedBy: pass.decidedBy },
    pods: pods.map((pod) => ({ ...pod, usage: null })),
    devices: devices?.map((row) => ({ ...row, flips: null })),
    probes: probes?.map(({ uid, container, type, result, since }) => [uid, container, type, result, since]),
  });

async function replace(file: string, text: string, sync: boolean): Promise<void> {
  const fresh = `${file}.new`;
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const handle = await open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, OWNER_ONLY);
  try {
    await handle.chmod(OWNER_ONLY);
    await handle.writeFile(text, "utf8");
    if (sync) await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(fresh, file);
}
