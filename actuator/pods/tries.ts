import { wantedDevices } from "./devices/wanted.ts";
import type { ManagerPorts, ManagerSettings } from "./manager-ports.ts";
import type { KnownPod } from "./pod-set.ts";

/** When a pod was asked about last, and what was known then that it may hang on. */
interface Tried {
  readonly room: number;
  readonly devices: number;
  readonly atMs: number;
  readonly heldMs: number;
}
/** A pod whose plugins did not do their part is left alone for so long, whatever changes. */
const HELD_MS = 10_000;

/** Which of the pods that wait are to be asked about again: there may be more room, or it was long ago. */
export class Tries {
  readonly #ports: Pick<ManagerPorts, "clock" | "devices">;
  readonly #settings: Pick<ManagerSettings, "retryMs">;
  readonly #tried = new Map<string, Tried>();

  constructor(ports: Pick<ManagerPorts, "clock" | "devices">, settings: Pick<ManagerSettings, "retryMs">) {
    this.#ports = ports;
    this.#settings = settings;
  }

  /** `room`: grows whenever there may be more of it. */
  isDue({ uid, pod }: KnownPod, room: number): boolean {
    const tried = this.#tried.get(uid);
    if (tried === undefined) return true;
    const age = this.#ports.clock.monotonicMs() - tried.atMs;
    if (age < tried.heldMs) return false;
    const hasOtherDevices = tried.devices !== this.#version && wantedDevices(pod).size > 0;
    return tried.room !== room || hasOtherDevices || age >= this.#settings.retryMs;
  }

  note(uid: string, room: number, isHeld = false): void {
    const atMs = this.#ports.clock.monotonicMs();
    this.#tried.set(uid, { room, devices: this.#version, atMs, heldMs: isHeld ? HELD_MS : 0 });
  }
  forget(uid: string): void {
    this.#tried.delete(uid);
  }

  get #version(): number {
    return this.#ports.devices?.version ?? 0;
  }
}
