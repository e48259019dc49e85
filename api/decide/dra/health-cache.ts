import { LIMITS } from "../../base/limits.ts";
import { byKey } from "../../base/order.ts";
import type { EpochMs } from "../../model/units.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { jsonText } from "../go/json.ts";
import { type DeviceState, HEALTH_TIMEOUT_NS, type HealthInfo, type HealthState, healthAt, isStale } from "./health.ts";

/** The name of the kubelet's file. */
export const HEALTH_STATE_FILE = "dra_health_state";
/**
 * The maximum number of devices stored per driver; kubelets before 1.37 store all. kubelet 1.37: maxDevicesPerDriver.
 */
export const MAX_DEVICES = 16_384;
/** kubelet 1.37: ResourceHealthMessageMaxLength, in bytes. */
const MAX_MESSAGE = 1024;

/** A device as its driver reports it, without the time of the report. `timeoutSeconds`: zero or less means 30 s. */
export interface ReportedDevice extends Omit<DeviceState, "updatedAt" | "timeoutNs"> {
  readonly timeoutSeconds: bigint;
}
interface Update {
  /** Devices whose health, message or timeout changed. */
  readonly changed: readonly DeviceState[];
  /** The number of devices that do not fit: their health is not known. */
  readonly leftOut: number;
  readonly isStored: boolean;
}

/** The health of devices as drivers report it. kubelet 1.37: healthInfoCache. */
export class HealthCache {
  readonly #behaviour: Behaviour["claims"];
  readonly #drivers: Map<string, Map<string, DeviceState>>;

  constructor(state: HealthState, behaviour: Behaviour["claims"]) {
    this.#behaviour = behaviour;
    this.#drivers = new Map([...state].map(([driver, devices]) => [driver, new Map(devices)]));
  }

  infoAt(now: EpochMs): HealthInfo {
    return healthAt(this.#drivers, now);
  }
  /** The file's text. kubelet 1.37: saveToCheckpointInternal. */
  text(): string {
    const drivers = [...this.#drivers].sort(byKey).map(([driver, devices]) => {
      const list = [...devices].sort(byKey).map(([key, device]) => `${jsonText(key)}:${this.#deviceText(device)}`);
      return `${jsonText(driver)}:{"Devices":{${list.join(",")}}}`;
    });
    return `{${drivers.join(",")}}`;
  }

  /**
   * Records a driver's report of all its devices. New devices are stored only as long as no driver has more than half
   * of what the others leave of the file. kubelet 1.37: updateHealthInfo.
   */
  update(driver: string, reported: readonly ReportedDevice[], now: EpochMs): Update {
    const known = this.#drivers.get(driver) ?? new Map<string, DeviceState>();
    this.#drivers.set(driver, known);
    const changed: DeviceState[] = [];
    const seen = new Set<string>();
    let [freeBytes, leftOut] = [this.#freeBytesFor(driver), 0];
    for (const one of reported) {
      const device = this.#kept(one, now);
      const key = `${one.poolName}/${one.deviceName}`;
      const before = known.get(key);
      seen.add(key);
      const growth = sizeOf(device) - (before === undefined ? 0 : sizeOf(before));
      // an entry that does not grow is stored however full the file is
      if ((growth > 0 && growth > freeBytes) || (before === undefined && known.size >= MAX_DEVICES)) {
        leftOut++;
        continue;
      }
      freeBytes -= growth;
      if (before === undefined || !isSame(before, device)) changed.push(device);
      known.set(key, device);
    }
    const gone = [...known].filter(([key, device]) => !seen.has(key) && isStale(device, now));
    const ended = gone.filter(([, { health }]) => health !== "Unknown");
    for (const [key, device] of this.#behaviour.forgetsDevices ? gone : ended) {
      const unknown: DeviceState = { ...device, health: "Unknown", message: "", updatedAt: now };
      if (device.health !== "Unknown") changed.push(unknown);
      if (this.#behaviour.forgetsDevices) known.delete(key);
      else known.set(key, unknown);
    }
    return { changed, leftOut, isStored: changed.length > 0 || (this.#behaviour.forgetsDevices && gone.length > 0) };
  }
  /** Removes a driver's devices after its stream ended; returns them. kubelet 1.37: clearDriver. */
  clear(driver: string): readonly DeviceState[] {
    const known = [...(this.#drivers.get(driver)?.values() ?? [])];
    this.#drivers.delete(driver);
    return known;
  }

  /** kubelet 1.37: buildDeviceHealth. */
  #kept({ timeoutSeconds, message, ...device }: ReportedDevice, updatedAt: EpochMs): DeviceState {
    const { healthTimeouts, healthMessages } = this.#behaviour;
    const ns = timeoutSeconds > 0n ? BigInt.asIntN(64, timeoutSeconds * 1_000_000_000n) : HEALTH_TIMEOUT_NS;
    return {
      ...device,
      updatedAt,
      timeoutNs: healthTimeouts ? ns : 0n,
      message: healthMessages ? cutMessage(message) : "",
    };
  }
  #freeBytesFor(driver: string): number {
    let [own, others] = [0, 0];
    for (const [name, devices] of this.#drivers) {
      for (const device of devices.values()) {
        if (name === driver) own += sizeOf(device);
        else others += sizeOf(device);
      }
    }
    return (LIMITS.stateText - others) / 2 - own;
  }
  #deviceText({ poolName, deviceName, health, updatedAt, timeoutNs, message }: DeviceState): string {
    const { healthTimeouts, healthMessages } = this.#behaviour;
    return (
      `{"PoolName":${jsonText(poolName)},"DeviceName":${jsonText(deviceName)},"Health":"${health}",` +
      `"LastUpdated":"${new Date(updatedAt).toISOString()}"` +
      `${healthTimeouts ? `,"HealthCheckTimeout":${timeoutNs}` : ""}` +
      `${healthMessages ? `,"Message":${jsonText(message)}` : ""}}`
    );
  }
}

const isSame = (a: DeviceState, b: DeviceState): boolean =>
  a.health === b.health && a.message === b.message && a.timeoutNs === b.timeoutNs;

/** Truncates a message at a character, where the kubelet may cut within one. */
function cutMessage(message: string): string {
  const bytes = UTF8.encode(message);
  if (bytes.length <= MAX_MESSAGE) return message;
  return `${new TextDecoder().decode(bytes.subarray(0, MAX_MESSAGE - 3), { stream: true })}...`;
}
const UTF8 = new TextEncoder();

/** The maximum size of a device in the file. */
const sizeOf = ({ poolName, deviceName, message }: DeviceState): number =>
  160 + UTF8.encode(jsonText(poolName + deviceName)).length * 2 + UTF8.encode(jsonText(message)).length;
