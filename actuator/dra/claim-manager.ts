import { LIMITS } from "../../api/base/limits.ts";
import { map, ok, type Result } from "../../api/base/result.ts";
import { DRA_STATE_FILE, noClaims, readClaims, writeClaims } from "../../api/decide/dra/checkpoint.ts";
import { type ClaimInfoCache, type ClaimRef, driversOf, type PreparedDevice } from "../../api/decide/dra/claim-info.ts";
import { claimName, podClaims } from "../../api/decide/dra/claim-name.ts";
import { containerDevices } from "../../api/decide/dra/container-devices.ts";
import { type ClaimHealth, claimHealth, type HealthInfo } from "../../api/decide/dra/health.ts";
import {
  type ClaimAnswer,
  type ClaimGates,
  type ClaimSources,
  type ClaimSteps,
  type DriverAnswer,
  type DriverCall,
  notRegistered,
  prepareResources,
} from "../../api/decide/dra/prepare.ts";
import { claimNames, removedPods, unprepareClaims, unprepareResources } from "../../api/decide/dra/unprepare.ts";
import { jsonText } from "../../api/decide/go/json.ts";
import { type Container, type Pod, podNamespace, podUid } from "../../api/model/pod.ts";
import type { ResourceClaim } from "../../api/model/resource-claim.ts";
import type { Behaviour } from "../../api/profiles/profile.ts";
import type { DraRegistry } from "./driver-registry.ts";

/** Finds the current claims by name; a missing one is left out. Errors: which could not be looked up, and why. */
export type FindClaims = (
  namespace: string,
  names: readonly string[],
) => Promise<Result<ReadonlyMap<string, ResourceClaim>, string>>;

/** What a pod's claims wait for, as the end of a sentence, and whether claims must be unprepared first. */
export interface ClaimWait {
  readonly what: string;
  readonly givesBack: boolean;
}
/** Options for preparing or unpreparing a pod's claims. */
interface PrepareOptions {
  /** Ends the calls to drivers. */
  readonly signal?: AbortSignal;
  /** Called on each change with what the claims wait for; null: nothing any more. */
  readonly onWait?: (wait: ClaimWait | null) => void;
}

interface ClaimManagerOptions {
  readonly behaviour: Behaviour["claims"];
  readonly gates: ClaimGates;
  readonly registry: Pick<DraRegistry, "driver" | "isRegistered">;
  readonly claims: FindClaims;
  /** The text of dra_manager_state; undefined: there is no file. */
  readonly state: string | undefined;
  /** Writes the state. INVARIANT: it is on disk on return. Error: why not. */
  readonly store: (text: string) => Result<unknown, string>;
}

/**
 * Prepares and unprepares the ResourceClaims of pods, in the kubelet's own steps (`api/decide/dra`). Pods that share a claim wait
 * for each other's calls of one driver about it, and for nothing else: a hanging driver blocks only its own claims, not the
 * other claims of their pods. kubelet 1.37: dra.Manager.
 */
export class ClaimManager {
  readonly #options: ClaimManagerOptions;
  readonly #cache: ClaimInfoCache;
  /** The end of running work, by pod, and by driver and claim. */
  readonly #busy = new Map<string, Promise<unknown>>();
  /** The end of the calls for each claim that its last pod unprepares. */
  readonly #leaving = new Map<string, Promise<unknown>>();
  /** Driver and claim pairs that were answered for pods that are still preparing other claims. */
  readonly #answered = new Set<string>();

  private constructor(options: ClaimManagerOptions, cache: ClaimInfoCache) {
    this.#options = options;
    this.#cache = cache;
  }
  /** Opens the state. Errors: why a kubelet with this file would not start, in its words. */
  static open(options: ClaimManagerOptions): Result<ClaimManager, string> {
    return map(readClaims(options.state, options.behaviour), (cache) => {
      if (options.state === undefined) options.store(noClaims());
      return new ClaimManager(options, cache);
    });
  }

  /**
   * Prepares the claims before the pod's sandbox is created. Returns why the pod does not start, in the kubelet's
   * words; undefined: all claims are prepared.
   */
  prepare(pod: Pod, how: PrepareOptions = {}): Promise<string | undefined> {
    const names = podClaims(pod, this.#options.gates.extended).flatMap((podClaim) => {
      const named = claimName(pod, podClaim);
      return named.ok && named.value.name !== null ? [named.value.name] : [];
    });
    return this.#withLocks([podKey(podUid(pod))], async () => {
      how.onWait?.({ what: `its ResourceClaims to be read: ${names.join(", ")}`, givesBack: false });
      const found = await this.#options.claims(podNamespace(pod), names);
      if (!found.ok) return `prepare dynamic resources: ${found.error}`;
      // nothing may be awaited between this check and the steps, which add the pod to its claims
      const unpreparing = () => this.#unpreparing(podNamespace(pod), names, how);
      for (let going = unpreparing(); going !== undefined; going = unpreparing()) await going;
      const sources = { ...this.#sources(), claim: (_: string, name: string) => found.value.get(name) };
      return this.#runSteps(prepareResources(this.#cache, pod, sources), how);
    });
  }
  /** Unprepares the claims after all containers of the pod have stopped. Returns why it must be retried. */
  unprepare(pod: Pod, how: PrepareOptions = {}): Promise<string | undefined> {
    return this.#withLocks([podKey(podUid(pod))], async () => {
      const names = claimNames(this.#cache, pod, this.#options.gates.extended);
      const steps = (some: typeof names) => unprepareResources(this.#cache, pod, this.#sources(), some);
      if (!names.ok) return this.#runSteps(steps(names));
      return this.#unprepare(podUid(pod) ?? "", podNamespace(pod), names.value, (some) => steps(ok(some)), how);
    });
  }
  /** Unprepares the claims of unknown pods. `active`: the uids of the known pods. Returns the errors by pod. */
  async reconcile(active: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
    const faults = new Map<string, string>();
    const gone = removedPods(this.#cache, active).map(async ({ uid, namespace, names }) => {
      const steps = (some: readonly string[]) => unprepareClaims(this.#cache, uid, namespace, some, this.#sources());
      const fault = await this.#withLocks([podKey(uid)], () => this.#unprepare(uid, namespace, names, steps));
      if (fault !== undefined) faults.set(uid, fault);
    });
    await Promise.all(gone);
    return faults;
  }
  /** The CDI devices of a container. Errors: why the container is not created, in the kubelet's words. */
  devices(pod: Pod, container: Container): Result<readonly string[], string> {
    return containerDevices(this.#cache, pod, container, this.#options.gates.extended);
  }
  /** `allocatedResourcesStatus` of a container's status; `messages`: the gate ResourceHealthStatusMessage. */
  health(pod: Pod, container: Container, info: HealthInfo, messages: boolean): readonly ClaimHealth[] {
    return claimHealth(this.#cache, pod, container, info, messages);
  }
  /** Whether a pod holds one of these devices. */
  hasAny(driver: string, devices: readonly Pick<PreparedDevice, "poolName" | "deviceName">[]): boolean {
    const keys = new Set(devices.map(({ poolName, deviceName }) => `${poolName}/${deviceName}`));
    return this.#cache
      .list()
      .some(({ drivers }) =>
        drivers.get(driver)?.devices?.some(({ poolName, deviceName }) => keys.has(`${poolName}/${deviceName}`)),
      );
  }
  /** Whether the pod still holds claims, and has not ended. kubelet 1.37: PodMightNeedToUnprepareResources. */
  holds(pod: Pod): boolean {
    return this.#cache.ofPod(podUid(pod) ?? "").length > 0;
  }

  #sources(): Omit<ClaimSources, "claim"> {
    const { gates, registry } = this.#options;
    return { gates, isRegistered: (driver) => registry.isRegistered(driver) };
  }

  /** Runs work after all running work with one of the keys. */
  async #withLocks<T>(keys: readonly string[], run: () => Promise<T>): Promise<T> {
    // all at once, so that two calls that share two keys do not wait for each other
    const before = Promise.all(keys.map((key) => this.#busy.get(key)));
    const running = before.then(run);
    const end = running.catch(() => undefined);
    for (const key of keys) this.#busy.set(key, end);
    try {
      return await running;
    } finally {
      for (const key of keys) if (this.#busy.get(key) === end) this.#busy.delete(key);
    }
  }

  /** The end of the calls with which another pod unprepares some of these claims; undefined: there are none. */
  #unpreparing(namespace: string, names: readonly string[], { onWait }: PrepareOptions): Promise<unknown> | undefined {
    const infos = names.flatMap((name) => this.#cache.get(namespace, name) ?? []);
    const leaving = infos.filter((info) => this.#leaving.has(claimKey(info)));
    if (leaving.length === 0) return undefined;
    const what = `${driverList(leaving.flatMap(driversOf))} to take back ${claimList(leaving)} of another pod`;
    onWait?.({ what, givesBack: true });
    return Promise.all(leaving.map((info) => this.#leaving.get(claimKey(info))));
  }

  /**
   * Unprepares a pod's claims. A kubelet calls the drivers one after the other, and the first failure ends it; here claims are
   * grouped by their drivers, so that none waits for a driver that is not its own.
   */
  async #unprepare(
    uid: string,
    namespace: string,
    names: readonly string[],
    steps: (names: readonly string[]) => ClaimSteps,
    { onWait }: PrepareOptions = {},
  ): Promise<string | undefined> {
    const held = names.flatMap((name) => this.#cache.get(namespace, name) ?? []);
    const own = held.filter(({ podUids }) => podUids.has(uid));
    const waits = new Map<string, string>();
    const groups = [...Map.groupBy(own, (info) => driversOf(info).join())].map(async ([key, group]) => {
      const left = group.filter(({ podUids }) => podUids.size === 1).map(claimKey);
      const noteWait = (wait: ClaimWait | null): void => {
        if (wait === null) waits.delete(key);
        else waits.set(key, wait.what);
        onWait?.(waits.size === 0 ? null : { what: [...waits.values()].join(", and "), givesBack: true });
      };
      const run = this.#runSteps(steps(group.map(({ name }) => name)), { onWait: noteWait });
      const end = run.catch(() => undefined);
      for (const leaves of left) this.#leaving.set(leaves, end);
      try {
        return await run;
      } finally {
        for (const leaves of left) this.#leaving.delete(leaves);
        noteWait(null);
      }
    });
    return (await Promise.all(groups)).find((fault) => fault !== undefined);
  }

  async #runSteps(steps: ClaimSteps, how: PrepareOptions = {}): Promise<string | undefined> {
    const answered: string[] = [];
    try {
      let step = steps.next();
      while (step.done !== true) {
        const call = step.value;
        if (call === "store") {
          const stored = this.#options.store(writeClaims(this.#cache));
          if (!stored.ok) return `checkpoint ResourceClaim state: ${stored.error}`;
          step = steps.next();
          continue;
        }
        const what = `${driverList([call.driver])} to ${VERBS[call.operation]} ${claimList(call.claims)}`;
        how.onWait?.({ what, givesBack: call.operation === "NodeUnprepareResources" });
        const keys = call.claims.map((claim) => callKey(call, claim));
        // the devices are recorded before another pod's call about these claims
        step = await this.#withLocks(keys, async () => steps.next(await this.#call(call, answered, how.signal)));
      }
      return step.value;
    } finally {
      for (const key of answered) this.#answered.delete(key);
    }
  }
  /** Calls the driver about the claims that are not yet answered for another pod. `answered` collects those that succeeded. */
  async #call(call: DriverCall, answered: string[], signal: AbortSignal | undefined): Promise<DriverAnswer> {
    const isKnown = (claim: ClaimRef): boolean =>
      call.operation === "NodePrepareResources" &&
      (this.#answered.has(callKey(call, claim)) || this.#cache.get(claim.namespace, claim.name)?.prepared === true);
    const { known = [], open = [] } = Object.groupBy(call.claims, (claim) => (isKnown(claim) ? "known" : "open"));
    const others = known.map(({ uid }) => [uid, { devices: "known" }] as [string, ClaimAnswer]);
    if (open.length === 0) return { claims: new Map(others) };
    const driver = this.#options.registry.driver(call.driver);
    // the driver may have disappeared since its claims were checked
    if (driver === undefined) return { failed: notRegistered(call.driver, () => false) ?? "" };
    const asked = { ...call, claims: open };
    const answer = this.#withinShare(asked, await driver.call(asked, signal));
    if ("failed" in answer) return answer;
    for (const claim of open) {
      const one = answer.claims.get(claim.uid);
      if (one === undefined || (one.error ?? "") !== "") continue;
      this.#answered.add(callKey(call, claim));
      answered.push(callKey(call, claim));
    }
    return { claims: new Map([...answer.claims, ...others]) };
  }

  /**
   * The answer, or why it is not stored: all drivers share one file, and each may use half of what the others leave,
   * so that no driver can prevent another's claims from being written.
   */
  #withinShare({ driver, claims }: DriverCall, answer: DriverAnswer): DriverAnswer {
    if ("failed" in answer) return answer;
    const asked = new Set(claims.map(({ uid }) => uid));
    const bytes = { own: 0, others: 0 };
    for (const { uid, drivers } of this.#cache.list()) {
      for (const [name, { devices }] of drivers) {
        if (name !== driver) bytes.others += bytesOf(devices);
        else if (!asked.has(uid)) bytes.own += bytesOf(devices);
      }
    }
    for (const { devices } of answer.claims.values()) if (devices !== "known") bytes.own += bytesOf(devices);
    if (bytes.own <= (STATE_BYTES - bytes.others) / 2) return answer;
    const error = `the driver's answers would have ${bytes.own} bytes, more than its share of ${DRA_STATE_FILE}`;
    return { claims: new Map([...answer.claims.keys()].map((uid) => [uid, { error, devices: [] }])) };
  }
}
/** The maximum size of the file, without the names of its claims. */
const STATE_BYTES = LIMITS.stateText * 0.75;
/** The size in the file: JSON within JSON. */
const bytesOf = (devices: readonly PreparedDevice[] | null): number =>
  devices === null || devices.length === 0 ? 0 : Buffer.byteLength(jsonText(jsonText(JSON.stringify(devices))));

const podKey = (uid = ""): string => `pod ${uid}`;
const claimKey = ({ namespace, name }: Pick<ClaimRef, "namespace" | "name">): string => `${namespace}/${name}`;
const callKey = ({ driver }: DriverCall, claim: ClaimRef): string => `${driver} ${claimKey(claim)}`;

const VERBS = { NodePrepareResources: "prepare", NodeUnprepareResources: "take back" } as const;
const claimList = (claims: readonly Pick<ClaimRef, "name">[]): string =>
  `ResourceClaim${claims.length === 1 ? "" : "s"} ${claims.map(({ name }) => name).join(", ")}`;
const driverList = (drivers: readonly string[]): string => {
  const names = [...new Set(drivers)];
  return `the DRA driver${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
};
