import type { PreferredQuestion } from "../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../api/model/device-decision.ts";
import { ok, type Result } from "../../api/model/result.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { DecisionClient, Problem } from "../ports.ts";
import type { DeviceDesk, DeviceFault } from "./devices/port.ts";
import { wantedDevices } from "./devices/wanted.ts";

/** Of a pod whose plugins are being asked which devices they would give it. */
const asksPlugins = (resources: readonly string[]): DeviceFault => ({
  reason: "AskingDevicePlugin",
  message: `waits for the device plugin of ${resources.join(", ")} to answer GetPreferredAllocation`,
});
const notServed = (resource: string): DeviceFault & { readonly isTold: boolean } => ({
  reason: "DevicePluginsOff",
  message: `${resource}: device plugins are not served by this daemon: set \`devicePlugins: serve\`, or remove it`,
  isTold: true,
});

/** Pods that want devices, before the node is asked about them. */
export class DeviceEntrance {
  readonly #desk: DeviceDesk | undefined;
  readonly #client: DecisionClient;

  constructor(desk: DeviceDesk | undefined, client: DecisionClient) {
    this.#desk = desk;
    this.#client = client;
  }

  /** Why the pod is not asked about; null: it may be. `isTold`: as a refusal. */
  whyWaits(pod: RunnablePod): (DeviceFault & { readonly isTold: boolean }) | null {
    const wanted = wantedDevices(pod);
    if (wanted.size === 0) return null;
    if (this.#desk !== undefined) return this.#desk.whyWaits(pod);
    const [resource = ""] = [...wanted.values()].flatMap((amounts) => [...amounts.keys()]);
    return notServed(resource);
  }

  /** Plugins are being asked what they prefer, and the pod is asked about again once they have answered; null: they are not. */
  async asks(pod: RunnablePod, snapshot: unknown): Promise<Result<DeviceFault | null, Problem>> {
    if (this.#desk === undefined || !this.#desk.isChosenByPlugin(pod)) return ok(null);
    const answer = await this.#client.decide("devices", snapshot, { pod: pod.object });
    if (!answer.ok) return answer;
    const { unanswered } = answer.value.decision as DevicesDecision;
    const isAsked = unanswered.length > 0 && this.#desk.ask(pod.uid, unanswered as readonly PreferredQuestion[]);
    return ok(isAsked ? asksPlugins([...new Set(unanswered.map(({ resource }) => resource))].sort()) : null);
  }
  /** Plugins were asked which devices the pod should get, and failed. */
  hasFailed(podUid: string): boolean {
    return this.#desk?.hasFailed(podUid) ?? false;
  }

  /** The pod is in, or gone. */
  forget(podUid: string): void {
    this.#desk?.forget(podUid);
  }
}
