import { err, ok, type Result } from "../../../api/base/result.ts";
import { podClaims } from "../../../api/decide/dra/claim-name.ts";
import type { HealthInfo } from "../../../api/decide/dra/health.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { ClaimManager, ClaimWait } from "../../dra/claim-manager.ts";
import { decodedPod } from "../../lifecycle/decoded-pod.ts";
import type { PodContainer, RunnablePod } from "../../lifecycle/pod.ts";
import type { ContainerHealth } from "../../lifecycle/status/status.ts";
import type { ChangeNotifier } from "../change-notifier.ts";
import type { PodClock } from "../pod-clock.ts";

/** Reasons of containers whose pod's claims are being prepared, or must first be unprepared for another pod or an earlier run. */
export const PREPARING_CLAIMS = "PreparingResourceClaims";
export const UNPREPARING_CLAIMS = "UnpreparingResourceClaims";
/** The time after which a driver's answer is reported as slow. */
const SLOW_MS = 2_000;
/** The delay before claims that could not be unprepared are retried. kubelet 1.37: backOffPeriod. */
const RETRY_MS = 10_000;
/** kubelet 1.37: reconcilePeriod. */
const RECONCILE_MS = 60_000;

/** Reported, since a kubelet would run the pod without these resources. */
const GATE_OFF =
  "a claim gives its extended resources, and the gate DRAExtendedResource is off: set it in the kubelet configuration";

/** Why nothing of a pod is started: its claims are not prepared. */
export interface ClaimFault {
  readonly message: string;
  /** The reason of its containers while a driver has not answered yet; null: preparing has failed. */
  readonly waits: typeof PREPARING_CLAIMS | typeof UNPREPARING_CLAIMS | null;
}

/** The interface to ResourceClaims for starting containers. */
export interface ContainerClaims {
  /**
   * Prepares the claims before a pod's sandbox is made. Null: they are prepared, or there are none. It waits only briefly for
   * a driver.
   */
  prepare(pod: RunnablePod, signal: AbortSignal): Promise<ClaimFault | null>;
  /** The CDI devices for a container that is about to be created. Errors: the kubelet's words. */
  devices(pod: RunnablePod, container: Pick<PodContainer, "name">): Result<readonly string[], string>;
}
/** The interface to ResourceClaims for the pod manager. */
export interface NodeClaimsPort {
  /** Increases when drivers come or go, or have answered what pods wait for. */
  readonly version: number;
  /** Increases when drivers come or go. */
  readonly drivers: number;
  /**
   * Whether an ended pod holds no claim; otherwise unpreparing continues, or is retried. INVARIANT: called when nothing
   * of the pod runs.
   */
  released(pod: RunnablePod): boolean;
  /**
   * Called once per sync with the uids of all pods of which something may run. Unprepares other pods' claims every
   * minute.
   */
  reconcile(active: () => ReadonlySet<string>): void;
  problems(): readonly Problem[];
}

interface Options {
  /** The claim manager. Error: why no claims can be prepared, which each pod with claims reports. */
  readonly manager: Result<ClaimManager, string>;
  readonly clock: PodClock;
  readonly changes: ChangeNotifier;
  /** True: the gate DRAExtendedResource is on. */
  readonly extended: boolean;
  /** Increases when drivers come or go. */
  readonly drivers: () => number;
  /** Absent: the gate ResourceHealthStatus is off. `messages`: the gate ResourceHealthStatusMessage is on. */
  readonly health?: { readonly info: () => HealthInfo; readonly messages: boolean };
}
interface Preparation {
  readonly cut: AbortController;
  readonly done: Promise<unknown>;
  /** What the pod waits for; null: nothing. */
  wait: ClaimWait | null;
  /** The result; undefined: still running; null: success. */
  end: string | null | undefined;
}
const GIVEN_BACK_FIRST: ClaimWait = { what: "its ResourceClaims to be unprepared first", givesBack: true };
interface Release {
  readonly drivers: number;
  readonly sinceMs: number;
  wait: ClaimWait | null;
  /** Why the last try failed; undefined: it is still running. */
  fault: string | undefined;
  againMs: number;
}

/**
 * The claims of the node's pods. Callers wait for a driver only for a moment; the call itself continues.
 */
export class PodClaims implements ContainerClaims, NodeClaimsPort {
  readonly #options: Options;
  readonly #preparations = new Map<string, Preparation>();
  readonly #releases = new Map<string, Release>();
  #reconciledMs = Number.NEGATIVE_INFINITY;
  #reconciling: Promise<unknown> | null = null;
  /** Faults by uid, for pods that are no longer known. */
  #gone: ReadonlyMap<string, string> = new Map();

  constructor(options: Options) {
    this.#options = options;
  }

  get version(): number {
    return this.#options.changes.version;
  }
  get drivers(): number {
    return this.#options.drivers();
  }

  async prepare(pod: RunnablePod, signal: AbortSignal): Promise<ClaimFault | null> {
    const { extendedResourceClaimStatus: made } = decodedPod(pod.object)?.status ?? {};
    if (made !== undefined && !this.#options.extended) return { message: GATE_OFF, waits: null };
    const model = this.#using(pod);
    if (model === null) return null;
    const { manager, clock } = this.#options;
    if (!manager.ok) return { message: manager.error, waits: null };
    const known = this.#preparations.get(pod.uid);
    const one = known ?? this.#begin(manager.value, pod.uid, model);
    // a call that continues from an earlier sync triggers the next sync when it ends
    if (known === undefined) {
      const answered = new AbortController();
      await Promise.race([one.done, clock.sleep(SLOW_MS, AbortSignal.any([signal, answered.signal]))]);
      answered.abort();
    }
    if (one.end === undefined) {
      const { what, givesBack } = one.wait ?? this.#releases.get(pod.uid)?.wait ?? GIVEN_BACK_FIRST;
      return { message: `waits for ${what}`, waits: givesBack ? UNPREPARING_CLAIMS : PREPARING_CLAIMS };
    }
    this.#preparations.delete(pod.uid);
    return one.end === null ? null : { message: one.end, waits: null };
  }

  devices(pod: RunnablePod, { name }: Pick<PodContainer, "name">): Result<readonly string[], string> {
    const model = this.#using(pod);
    const container = model && containersOf(model).find((one) => one.name === name);
    const { manager } = this.#options;
    if (model === null || container === null || container === undefined) return ok([]);
    return manager.ok ? manager.value.devices(model, container) : err(manager.error);
  }

  released(pod: RunnablePod): boolean {
    const { manager, clock, drivers } = this.#options;
    if (!manager.ok) return true;
    const preparation = this.#preparations.get(pod.uid);
    if (preparation !== undefined && preparation.end === undefined) {
      preparation.cut.abort();
      return false;
    }
    this.#preparations.delete(pod.uid);
    const model = decodedPod(pod.object);
    if (model === null || !manager.value.holds(model)) {
      this.#releases.delete(pod.uid);
      return true;
    }
    const last = this.#releases.get(pod.uid);
    const isDue =
      last === undefined ||
      (last.fault !== undefined && (clock.monotonicMs() >= last.againMs || last.drivers !== drivers()));
    if (isDue) void this.#release(manager.value, pod.uid, model);
    return false;
  }

  reconcile(active: () => ReadonlySet<string>): void {
    const { manager, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (!manager.ok || this.#reconciling !== null || nowMs - this.#reconciledMs < RECONCILE_MS) return;
    this.#reconciledMs = nowMs;
    const uids = active();
    for (const [uid, { cut }] of this.#preparations) {
      if (uids.has(uid)) continue;
      cut.abort();
      this.#preparations.delete(uid);
    }
    for (const uid of this.#releases.keys()) if (!uids.has(uid)) this.#releases.delete(uid);
    const reconciled = manager.value.reconcile(uids).catch((error: unknown) => new Map([["?", unexpected(error)]]));
    this.#reconciling = reconciled.then((faults) => {
      this.#gone = faults;
      this.#reconciling = null;
    });
  }

  /** `allocatedResourcesStatus` by container; undefined: no container has any. */
  health(pod: RunnablePod): ContainerHealth | undefined {
    const { manager, health } = this.#options;
    if (health === undefined || !manager.ok) return undefined;
    const model = this.#using(pod);
    if (model === null) return undefined;
    const info = health.info();
    const entries = model.spec.containers
      .map((one) => [one.name, manager.value.health(model, one, info, health.messages)] as const)
      .filter(([, claims]) => claims.length > 0);
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }

  problems(): readonly Problem[] {
    const { manager, clock } = this.#options;
    const failed = [...this.#releases].flatMap(([uid, { fault }]) =>
      fault === undefined ? [] : [[uid, fault] as const],
    );
    const kept = [...failed, ...this.#gone].map(
      ([uid, why]) => `pod ${uid} cannot unprepare its ResourceClaims, and is tried again: ${why}`,
    );
    const slowSinceMs = clock.monotonicMs() - SLOW_MS;
    const waiting = [...this.#releases].flatMap(([uid, { sinceMs, wait, fault }]) =>
      fault !== undefined || wait === null || sinceMs > slowSinceMs ? [] : [`pod ${uid} waits for ${wait.what}`],
    );
    return [...(manager.ok ? [] : [manager.error]), ...kept, ...waiting].map((message) => ({
      from: "devices",
      message,
    }));
  }

  /** Null: the pod has no claims. */
  #using(pod: RunnablePod): Pod | null {
    const model = decodedPod(pod.object);
    return model !== null && podClaims(model, this.#options.extended).length > 0 ? model : null;
  }

  #begin(manager: ClaimManager, uid: string, pod: Pod): Preparation {
    const cut = new AbortController();
    const onWait = (wait: ClaimWait | null): void => {
      one.wait = wait;
    };
    const prepared = manager.prepare(pod, { signal: cut.signal, onWait }).catch(unexpected);
    const done = prepared.then((fault) => {
      one.end = fault ?? null;
      this.#options.changes.changed();
    });
    const one: Preparation = { cut, done, wait: null, end: undefined };
    this.#preparations.set(uid, one);
    return one;
  }

  async #release(manager: ClaimManager, uid: string, pod: Pod): Promise<void> {
    const { clock, changes, drivers } = this.#options;
    const release: Release = {
      drivers: drivers(),
      sinceMs: clock.monotonicMs(),
      wait: null,
      fault: undefined,
      againMs: 0,
    };
    this.#releases.set(uid, release);
    const onWait = (wait: ClaimWait | null): void => {
      release.wait = wait;
    };
    release.fault = await manager.unprepare(pod, { onWait }).catch(unexpected);
    release.againMs = clock.monotonicMs() + RETRY_MS;
    if (release.fault === undefined) this.#releases.delete(uid);
    changes.changed();
  }
}

/** A mistake in the code ends one pod's work, not the daemon that runs the others. */
const unexpected = (error: unknown): string => `unexpected: ${(error as Error).message}`;
