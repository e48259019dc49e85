import { err, ok, type Result } from "../../api/base/result.ts";
import { type DeviceState, HEALTHS, type HealthInfo, readHealth } from "../../api/decide/dra/health.ts";
import { HEALTH_STATE_FILE, HealthCache, MAX_DEVICES, type ReportedDevice } from "../../api/decide/dra/health-cache.ts";
import { type HealthService, healthService } from "../../api/decide/dra/registration.ts";
import type { EpochMs } from "../../api/model/units.ts";
import type { Behaviour } from "../../api/profiles/profile.ts";
import { ListThrottle } from "../deviceplugin/device-list.ts";
import { devicePlaces } from "../deviceplugin/device-list-reader.ts";
import type { PluginFault } from "../deviceplugin/fault.ts";
import { type DraDriver, type HealthReport, readHealthReport } from "./driver.ts";

const TOO_MANY = `it reports more devices than ${HEALTH_STATE_FILE} has room for: ${MAX_DEVICES} at most, and half of what other drivers leave of the file; the health of the others is not known`;
/** The time from the end of a stream until the next is opened. kubelet 1.37: DRAPluginManager.add. */
const RETRY_MS = 5_000;

interface DeviceHealthOptions {
  readonly behaviour: Behaviour["claims"];
  /** The text of dra_health_state; undefined: there is no file. */
  readonly state: string | undefined;
  /** Writes the state. Error: why not; the reports count in any case. */
  readonly store: (text: string) => Result<unknown, string>;
  readonly now: () => EpochMs;
  /** Called when what a driver reports about these devices changes. */
  readonly onChange: (driver: string, devices: readonly Pick<DeviceState, "poolName" | "deviceName">[]) => void;
  readonly retryMs?: number;
}

/**
 * The health of devices, from one stream per registered driver. The stream of a driver that floods is read at growing
 * intervals, and a driver may only report on its own devices. kubelet 1.37: HandleWatchResourcesStream.
 */
export class DeviceHealth {
  readonly #options: DeviceHealthOptions;
  readonly #cache: HealthCache;
  readonly #load = new ListThrottle();
  readonly #stops = new Set<() => void>();
  /** The fault of each driver's stream. */
  readonly #faults = new Map<string, string>();
  #stored: string | undefined;
  #unwritten: string | undefined;

  constructor(options: DeviceHealthOptions) {
    this.#options = options;
    this.#stored = options.state;
    this.#cache = new HealthCache(readHealth(options.state, options.behaviour), options.behaviour);
  }

  info(): HealthInfo {
    return this.#cache.infoAt(this.#options.now());
  }
  problems(): readonly string[] {
    const faults = [...this.#faults].map(
      ([driver, fault]) => `health of the devices of DRA driver ${driver}: ${fault}`,
    );
    return [...faults, ...(this.#unwritten === undefined ? [] : [`${HEALTH_STATE_FILE}: ${this.#unwritten}`])];
  }

  /** Watches a registered plugin with these services while it exists. Returns a function that ends it. */
  watch(driver: DraDriver, services: readonly string[]): () => void {
    const service = healthService(services, this.#options.behaviour);
    if (service === undefined) return () => undefined;
    let stream: { readonly stop: () => void } | undefined;
    let timer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      clearTimeout(timer);
      stream?.stop();
      this.#stops.delete(stop);
    };
    const open = (): void => {
      const onEnd = (fault: PluginFault): void => {
        this.#ended(driver.name, fault);
        const isLast = this.#options.behaviour.healthByService && fault.code === "UNIMPLEMENTED";
        if (!isLast) timer = setTimeout(open, this.#options.retryMs ?? RETRY_MS);
      };
      stream = this.#open(driver, service, onEnd);
    };
    this.#stops.add(stop);
    open();
    return () => {
      stop();
      this.#faults.delete(driver.name);
      this.#clear(driver.name);
    };
  }
  /** Closes the streams; the reports stay on disk for the next daemon. */
  close(): void {
    for (const stop of this.#stops) stop();
  }

  #open(driver: DraDriver, service: HealthService, onEnd: (fault: PluginFault) => void) {
    const read = (bytes: Buffer): Result<boolean, string> => {
      const places = devicePlaces(bytes, MAX_DEVICES);
      if (places === undefined) return err("the answer is no NodeWatchResourcesResponse");
      // devices beyond the limit are not even decoded
      const isCut = places.length > 2 * MAX_DEVICES;
      const report = readHealthReport(isCut ? bytes.subarray(0, places[2 * MAX_DEVICES - 1]) : bytes);
      if (report === undefined) return err("the answer is no NodeWatchResourcesResponse");
      this.#update(driver.name, report.devices.map(reportedDevice), isCut);
      return ok(true);
    };
    return driver.watchHealth(service, { load: this.#load, read, onEnd });
  }
  #update(driver: string, devices: readonly ReportedDevice[], isCut: boolean): void {
    const { changed, leftOut, isStored } = this.#cache.update(driver, devices, this.#options.now());
    if (isCut || leftOut > 0) this.#faults.set(driver, TOO_MANY);
    else this.#faults.delete(driver);
    if (isStored) this.#store();
    if (changed.length > 0) this.#options.onChange(driver, changed);
  }
  #ended(driver: string, { code, call, message }: PluginFault): void {
    // a driver need not serve this
    if (code === "UNIMPLEMENTED") this.#faults.delete(driver);
    else this.#faults.set(driver, `${call}: ${code}: ${message}`);
    this.#clear(driver);
  }
  #clear(driver: string): void {
    const known = this.#cache.clear(driver);
    this.#store();
    if (known.length > 0) this.#options.onChange(driver, known);
  }
  #store(): void {
    const text = this.#cache.text();
    if (text === this.#stored) return;
    const stored = this.#options.store(text);
    this.#unwritten = stored.ok ? undefined : stored.error;
    if (stored.ok) this.#stored = text;
  }
}

const reportedDevice = ({ device, health, healthCheckTimeoutSeconds, message }: HealthReport["devices"][number]) => ({
  poolName: device?.poolName ?? "",
  deviceName: device?.deviceName ?? "",
  health: HEALTHS[health] ?? "Unknown",
  timeoutSeconds: BigInt(healthCheckTimeoutSeconds),
  message,
});
