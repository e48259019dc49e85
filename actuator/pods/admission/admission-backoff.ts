import { deviceRequirements } from "../devices/device-requirements.ts";
import type { NodeDevices } from "../devices/port.ts";
import type { PodClock } from "../pod-clock.ts";
import type { KnownPod } from "../records/pod-set.ts";

/** Counts how often something that pods wait for was released. */
export class CapacityGeneration {
  #generation = 0;

  /** Increases whenever more may be free than before. */
  get generation(): number {
    return this.#generation;
  }
  free(): void {
    this.#generation++;
  }
}

interface Deps {
  readonly clock: PodClock;
  readonly devices?: Pick<NodeDevices, "version" | "registrationOf">;
}
interface Settings {
  readonly retryMs: number;
}
/** When a pod was last tried, and the state on which the result may depend. */
interface LastAttempt {
  readonly generation: number;
  readonly devices: number;
  readonly atMs: number;
}
/** A pod whose plugins failed. */
interface Failed {
  readonly times: number;
  readonly atMs: number;
  /** Registrations of the plugins on which it depends. */
  readonly registration: string;
}
/** The time before the second try, whatever changes; it doubles each time. */
const FIRST_MS = 10_000;
const LONGEST_MS = 300_000;
/** After this time without a failure, the back-off starts over. */
const RESET_MS = 2 * LONGEST_MS;

/** Chooses the waiting pods to try again: more capacity may be free, or the last try was long ago. */
export class AdmissionBackoff {
  readonly #deps: Deps;
  readonly #capacity: CapacityGeneration;
  readonly #settings: Settings;
  readonly #tried = new Map<string, LastAttempt>();
  readonly #failed = new Map<string, Failed>();

  constructor(deps: Deps, capacity: CapacityGeneration, settings: Settings) {
    this.#deps = deps;
    this.#capacity = capacity;
    this.#settings = settings;
  }

  isDue(known: KnownPod): boolean {
    const { uid, pod } = known;
    if (this.#isHeld(known)) return false;
    const tried = this.#tried.get(uid);
    if (tried === undefined) return true;
    const age = this.#deps.clock.monotonicMs() - tried.atMs;
    const hasOtherDevices = tried.devices !== this.#version && deviceRequirements(pod).size > 0;
    return tried.generation !== this.#capacity.generation || hasOtherDevices || age >= this.#settings.retryMs;
  }

  /** Records that the pod is tried now. */
  update(uid: string): void {
    const { generation } = this.#capacity;
    this.#tried.set(uid, { generation, devices: this.#version, atMs: this.#deps.clock.monotonicMs() });
  }
  /** Records that the pod's plugins failed. Returns how often in a row. */
  failed({ uid, pod }: KnownPod): number {
    this.update(uid);
    const atMs = this.#deps.clock.monotonicMs();
    const registration = this.#registrationOf(pod);
    const before = this.#failed.get(uid);
    const isAgain = before?.registration === registration && atMs - before.atMs < RESET_MS;
    const times = isAgain ? before.times + 1 : 1;
    this.#failed.set(uid, { times, atMs, registration });
    return times;
  }
  forget(uid: string): void {
    this.#tried.delete(uid);
    this.#failed.delete(uid);
  }
  /** Forgets pods that are gone. */
  prune(isThere: (uid: string) => boolean): void {
    for (const uid of [...this.#tried.keys(), ...this.#failed.keys()]) if (!isThere(uid)) this.forget(uid);
  }

  #isHeld({ uid, pod }: KnownPod): boolean {
    const failed = this.#failed.get(uid);
    if (failed === undefined || failed.registration !== this.#registrationOf(pod)) return false;
    const heldMs = Math.min(FIRST_MS * 2 ** (failed.times - 1), LONGEST_MS);
    return this.#deps.clock.monotonicMs() - failed.atMs < heldMs;
  }
  #registrationOf(pod: KnownPod["pod"]): string {
    return this.#deps.devices?.registrationOf(pod) ?? "";
  }
  get #version(): number {
    return this.#deps.devices?.version ?? 0;
  }
}
