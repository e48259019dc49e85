import { DECIDING, NOT_KEPT, WAITING } from "./devices/words.ts";
import type { ManagerPorts } from "./manager-ports.ts";

interface Hold {
  readonly untilMs: number;
  /** It waits for a plugin: what the devices' version was then. */
  readonly devices: number | undefined;
}
const HELD_MS = 10_000;
/** Of containers that wait for a plugin, for what is decided about them, or for room on a disk: no failure of their own. */
export const AWAITED: ReadonlySet<string> = new Set([WAITING, DECIDING, NOT_KEPT]);

/** Pods that are left alone for a while since their last turn of work failed. kubelet 1.36: podWorkers, backOffPeriod. */
export class Holds {
  readonly #ports: Pick<ManagerPorts, "clock" | "devices">;
  readonly #held = new Map<string, Hold>();

  constructor(ports: Pick<ManagerPorts, "clock" | "devices">) {
    this.#ports = ports;
  }

  /** `reasons`: of what failed. */
  note(uid: string, reasons: readonly string[]): void {
    const devices = reasons.some((reason) => AWAITED.has(reason)) ? this.#ports.devices?.version : undefined;
    this.#held.set(uid, { untilMs: this.#ports.clock.nowMs() + HELD_MS, devices });
  }
  free(uid: string): void {
    this.#held.delete(uid);
  }

  /** A pod that waits for a plugin is not held once plugins have changed, nor one whose clock was set. */
  isHeld(uid: string): boolean {
    const held = this.#held.get(uid);
    if (held === undefined) return false;
    const leftMs = held.untilMs - this.#ports.clock.nowMs();
    const hasCome = held.devices !== undefined && held.devices !== this.#ports.devices?.version;
    return leftMs > 0 && leftMs <= HELD_MS && !hasCome;
  }
}
