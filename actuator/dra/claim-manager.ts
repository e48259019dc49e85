import { DRA_STATE_FILE, noClaims, readClaims, writeClaims } from "../../api/decide/dra/checkpoint.ts";
import type { ClaimInfoCache, PreparedDevice } from "../../api/decide/dra/claim-info.ts";
import { claimName, podClaims } from "../../api/decide/dra/claim-name.ts";
import { containerDevices } from "../../api/decide/dra/container-devices.ts";
import { type ClaimHealth, claimHealth, type HealthInfo } from "../../api/decide/dra/health.ts";
import {
  type ClaimGates,
  type ClaimSources,
  type ClaimSteps,
  type DriverAnswer,
  type DriverCall,
  notRegistered,
  prepareResources,
} from "../../api/decide/dra/prepare.ts";
import { claimNames, gonePods, unprepareClaims, unprepareResources } from "../../api/decide/dra/unprepare.ts";
import { jsonText } from "../../api/decide/go/json.ts";
import { LIMITS } from "../../api/model/limits.ts";
import { type Container, type Pod, podNamespace, podUid } from "../../api/model/pod.ts";
import type { ResourceClaim } from "../../api/model/resource-claim.ts";
import { map, type Result } from "../../api/model/result.ts";
import type { Behaviour } from "../../api/profiles/profile.ts";
import type { DraRegistry } from "./driver-registry.ts";

/** Claims by their names, as they are now; one that is not there is left out. Errors: which could not be looked up, and why. */
export type FindClaims = (
  namespace: string,
  names: readonly string[],
) => Promise<Result<ReadonlyMap<string, ResourceClaim>, string>>;

/** How a pod's claims are prepared. */
interface Preparing {
  /** Ends the calls to drivers. */
  readonly signal?: AbortSignal;
  /** Told of each driver that is called. */
  readonly onCall?: (driver: string) => void;
}

interface ClaimManagerOptions {
  readonly behaviour: Behaviour["claims"];
  readonly gates: ClaimGates;
  readonly registry: Pick<DraRegistry, "driver" | "isRegistered">;
  readonly claims: FindClaims;
  /** The text of dra_manager_state; undefined: there is no file. */
  readonly state: string | undefined;
  /** Writes it. INVARIANT: on the disk once it has answered. The error says why it is not. */
  readonly store: (text: string) => Result<unknown, string>;
}

/**
 * Prepares the ResourceClaims of pods and gives them back, by the kubelet's own steps (`api/decide/dra`). Pods that share a claim wait
 * for each other, and for nobody else: a driver that hangs holds up its own claims alone. kubelet 1.37: dra.Manager.
 */
export class ClaimManager {
  readonly #options: ClaimManagerOptions;
  readonly #cache: ClaimInfoCache;
  /** By claim: the end of what is being done with it. */
  readonly #busy = new Map<string, Promise<unknown>>();

  private constructor(options: ClaimManagerOptions, cache: ClaimInfoCache) {
    this.#options = options;
    this.#cache = cache;
  }
  /** Errors: why a kubelet with this file would not start, in its words. */
  static open(options: ClaimManagerOptions): Result<ClaimManager, string> {
    return map(readClaims(options.state, options.behaviour), (cache) => {
      if (options.state === undefined) options.store(noClaims());
      return new ClaimManager(options, cache);
    });
  }

  /** Before the pod's sandbox. Answers why it does not start, in the kubelet's words; undefined: all its claims are prepared. */
  prepare(pod: Pod, how: Preparing = {}): Promise<string | undefined> {
    const names = podClaims(pod, this.#options.gates.extended).flatMap((podClaim) => {
      const named = claimName(pod, podClaim);
      return named.ok && named.value.name !== null ? [named.value.name] : [];
    });
    const run = async () => {
      const found = await this.#options.claims(podNamespace(pod), names);
      if (!found.ok) return `prepare dynamic resources: ${found.error}`;
      const sources = { ...this.#sources(), claim: (_: string, name: string) => found.value.get(name) };
      return this.#carryOut(prepareResources(this.#cache, pod, sources), how);
    };
    return this.#alone(podNamespace(pod), names, run);
  }
  /** Once all containers of the pod have stopped. Answers why it has to be tried again. */
  unprepare(pod: Pod): Promise<string | undefined> {
    const names = claimNames(this.#cache, pod, this.#options.gates.extended);
    const run = () => this.#carryOut(unprepareResources(this.#cache, pod, this.#sources()));
    return this.#alone(podNamespace(pod), names.ok ? names.value : [], run);
  }
  /** Gives back what pods hold that nobody knows any more. `active`: the uids of the pods that there are. Answers what went wrong, by pod. */
  async reconcile(active: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
    const faults = new Map<string, string>();
    const gone = gonePods(this.#cache, active).map(async ({ uid, namespace, names }) => {
      const run = () => this.#carryOut(unprepareClaims(this.#cache, uid, namespace, names, this.#sources()));
      const fault = await this.#alone(namespace, names, run);
      if (fault !== undefined) faults.set(uid, fault);
    });
    await Promise.all(gone);
    return faults;
  }
  /** The CDI devices that a container is made with. Errors: why it is not made, in the kubelet's words. */
  devices(pod: Pod, container: Container): Result<readonly string[], string> {
    return containerDevices(this.#cache, pod, container, this.#options.gates.extended);
  }
  /** `allocatedResourcesStatus` of a container's status; `messages`: the gate ResourceHealthStatusMessage. */
  health(pod: Pod, container: Container, info: HealthInfo, messages: boolean): readonly ClaimHealth[] {
    return claimHealth(this.#cache, pod, container, info, messages);
  }
  /** True: a pod holds one of these devices. */
  hasAny(driver: string, devices: readonly Pick<PreparedDevice, "poolName" | "deviceName">[]): boolean {
    const keys = new Set(devices.map(({ poolName, deviceName }) => `${poolName}/${deviceName}`));
    return this.#cache
      .list()
      .some(({ drivers }) =>
        drivers.get(driver)?.devices?.some(({ poolName, deviceName }) => keys.has(`${poolName}/${deviceName}`)),
      );
  }
  /** True: the pod still holds claims, and has not ended. kubelet 1.37: PodMightNeedToUnprepareResources. */
  holds(pod: Pod): boolean {
    return this.#cache.ofPod(podUid(pod) ?? "").length > 0;
  }

  #sources(): Omit<ClaimSources, "claim"> {
    const { gates, registry } = this.#options;
    return { gates, isRegistered: (driver) => registry.isRegistered(driver) };
  }

  /** After all that is being done with one of the claims. */
  async #alone<T>(namespace: string, names: readonly string[], run: () => Promise<T>): Promise<T> {
    const keys = [...new Set(names)].map((name) => `${namespace}/${name}`);
    // all at once, so that two that share two claims do not wait for each other
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

  async #carryOut(steps: ClaimSteps, { signal, onCall }: Preparing = {}): Promise<string | undefined> {
    let step = steps.next();
    while (step.done !== true) {
      const call = step.value;
      if (call === "store") {
        const stored = this.#options.store(writeClaims(this.#cache));
        if (!stored.ok) return `checkpoint ResourceClaim state: ${stored.error}`;
        step = steps.next();
        continue;
      }
      const driver = this.#options.registry.driver(call.driver);
      // it may have gone since its claims were looked at
      const failed = notRegistered(call.driver, () => driver !== undefined) ?? "";
      onCall?.(call.driver);
      step = steps.next(driver === undefined ? { failed } : this.#withinShare(call, await driver.call(call, signal)));
    }
    return step.value;
  }

  /**
   * The answer, or in its place why it is not kept: all drivers share one file, and each may take half of what the others leave of it,
   * so that nobody's answers keep another's claims from being written.
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
    for (const { devices } of answer.claims.values()) bytes.own += bytesOf(devices);
    if (bytes.own <= (STATE_BYTES - bytes.others) / 2) return answer;
    const error = `the driver's answers would have ${bytes.own} bytes, more than its share of ${DRA_STATE_FILE}`;
    return { claims: new Map([...answer.claims.keys()].map((uid) => [uid, { error, devices: [] }])) };
  }
}
/** What is read back of the file, but for the names of its claims. */
const STATE_BYTES = LIMITS.stateText * 0.75;
/** As the file has them: JSON within JSON. */
const bytesOf = (devices: readonly PreparedDevice[] | null): number =>
  devices === null || devices.length === 0 ? 0 : Buffer.byteLength(jsonText(jsonText(JSON.stringify(devices))));
