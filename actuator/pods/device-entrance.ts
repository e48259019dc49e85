import type { PreferredQuestion } from "../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../api/model/device-decision.ts";
import { ok, type Result } from "../../api/model/result.ts";
import type { RunnablePod } from "../lifecycle/pod.ts";
import type { DecisionClient, Problem } from "../ports.ts";
import type { DeviceDesk, DeviceFault } from "./devices/port.ts";
import { wantedDevices } from "./devices/wanted.ts";

/** Of a pod whose plugins are being asked which devices they would give it. */
export const ASKS_PLUGIN: DeviceFault = {
  reason: "AskingDevicePlugin",
  message: "its device plugins are asked which devices they prefer",
};
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

  /** Whether plugins are being asked what they prefer: then the pod is asked about again once they have answered. */
  async asks(pod: RunnablePod, snapshot: unknown): Promise<Result<boolean, Problem>> {
    if (this.#desk === undefined || !this.#desk.isChosenByPlugin(pod)) return ok(false);
    const answer = await this.#client.decide("devices", snapshot, { pod: pod.object });
    if (!answer.ok) return answer;
    const { unanswered } = answer.value.decision as DevicesDecision;
    return ok(unanswered.length > 0 && this.#desk.ask(pod.uid, unanswered as readonly PreferredQuestion[]));
  }

  /** The pod is in, or gone. */
  forget(podUid: string): void {
    this.#desk?.forget(podUid);
  }
}
