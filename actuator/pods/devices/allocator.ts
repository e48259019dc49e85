import type { PodDevicesEntry } from "../../../api/decide/devices/checkpoint.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Counters } from "../../status/counters.ts";
import type { DeviceBook } from "./book.ts";
import type { PluginCalls } from "./calls.ts";
import { entryOf, idsOf, withResponse } from "./held.ts";
import type { PluginLook } from "./plugin-look.ts";
import type { DeviceFault } from "./port.ts";
import { wantedDevices } from "./wanted.ts";
import { allocateFailed, goText, nothingAllocated, notKept, WAITING, waitsFor } from "./words.ts";

export interface AllocatorPorts {
  readonly host: Pick<DevicePluginHost, "allocate">;
  readonly book: DeviceBook;
  readonly plugins: PluginLook;
  readonly waitMs: number;
  readonly calls: PluginCalls;
  readonly counters: Pick<Counters, "deviceAllocated">;
  /** A container holds nothing that is about to start: its devices are to be decided anew. Answers what it is told. */
  readonly onLacking: (pod: RunnablePod, container: string, why: string) => DeviceFault;
  /** Its devices are given back. */
  readonly onRefused: (pod: RunnablePod, resource: string, fault: DeviceFault) => void;
}
type Settled = Result<null, DeviceFault>;
interface Pending {
  readonly podUid: string;
  readonly containerName: string;
  readonly resourceName: string;
}

/** Asks plugins what the devices of pods bring. */
export class Allocator {
  readonly #ports: AllocatorPorts;
  /** A call goes on when its pod's turn is cut short: the next turn waits for the same one. */
  readonly #calls = new Map<string, Promise<Settled>>();

  constructor(ports: AllocatorPorts) {
    this.#ports = ports;
  }

  /**
   * Allocate for what of a pod was not asked for yet, init containers first, then by the resources' names. An error gives
   * back all that the pod holds, unless it `keeps` it. `starting`: of these containers only; absent: of all.
   * kubelet 1.36: allocateContainerResources.
   */
  async prepare(pod: RunnablePod, signal: AbortSignal, starting?: ReadonlySet<string>): Promise<Settled> {
    for (const [containerName, amounts] of wantedDevices(pod)) {
      if (starting?.has(containerName) === false) continue;
      for (const resourceName of amounts.keys()) {
        const named = { podUid: pod.uid, containerName, resourceName };
        const settled = await this.#settle(pod, named, signal);
        if (settled.ok) continue;
        if (settled.error.keeps !== true) this.#giveBack(pod, resourceName, settled.error);
        return settled;
      }
    }
    return ok(null);
  }

  async #settle(pod: RunnablePod, named: Pending, signal: AbortSignal): Promise<Settled> {
    const { book, plugins, waitMs } = this.#ports;
    const { podUid, containerName, resourceName } = named;
    const entry = entryOf(book.now(), named);
    if (entry === undefined) {
      const noRoom = book.whyNot(named);
      if (noRoom !== undefined) return err(allocateFailed(noRoom));
      const why = nothingAllocated(podUid, containerName, resourceName);
      return err(this.#ports.onLacking(pod, containerName, why));
    }
    if (entry.allocResp !== null) return ok(null);
    if (signal.aborted) return CUT;
    if (plugins.isEarly && !plugins.isReady(resourceName)) return err(waitsFor([resourceName], waitMs));
    const why = plugins.whyNot(resourceName, idsOf(entry));
    if (why !== undefined) return err(allocateFailed(why));
    return unlessAborted(this.#call(entry), signal);
  }

  #call(entry: PodDevicesEntry): Promise<Settled> {
    const ids = idsOf(entry);
    const key = JSON.stringify([entry.podUid, entry.containerName, entry.resourceName, ids]);
    const call = this.#calls.get(key) ?? this.#ask(entry, ids).finally(() => this.#calls.delete(key));
    this.#calls.set(key, call);
    return call;
  }

  async #ask(entry: PodDevicesEntry, ids: readonly string[]): Promise<Settled> {
    const { host, book, calls } = this.#ports;
    const { podUid, containerName, resourceName } = entry;
    const answer = await calls.during(podUid, resourceName, "Allocate", host.allocate(resourceName, ids));
    this.#ports.counters.deviceAllocated(resourceName, answer.ok);
    if (!answer.ok) return err(allocateFailed(goText(answer.error)));
    const { base64 } = answer.value;
    const noRoom = book.shareFault({ ...entry, allocResp: base64 });
    if (noRoom !== undefined) return err(allocateFailed(noRoom));
    const kept = book.edit((now) => withResponse(now, entry, base64));
    if (!kept.ok) return err(notKept(kept.error));
    // the pod's devices were taken back meanwhile, or are others
    if (kept.value) return ok(null);
    return err(allocateFailed(nothingAllocated(podUid, containerName, resourceName)));
  }

  #giveBack(pod: RunnablePod, resource: string, fault: DeviceFault): void {
    // where it cannot be written, it stands as such, and the next decision takes them back
    this.#ports.book.giveBack(pod.uid);
    this.#ports.onRefused(pod, resource, fault);
  }
}

const CUT: Settled = err({ reason: WAITING, message: "the pod's turn was cut short", keeps: true });

async function unlessAborted(call: Promise<Settled>, signal: AbortSignal): Promise<Settled> {
  if (signal.aborted) return CUT;
  const aborted = Promise.withResolvers<Settled>();
  const cut = (): void => aborted.resolve(CUT);
  signal.addEventListener("abort", cut, { once: true });
  const settled = await Promise.race([call, aborted.promise]);
  signal.removeEventListener("abort", cut);
  return settled;
}
