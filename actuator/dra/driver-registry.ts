import { err, ok } from "../../api/base/result.ts";
import { chooseService, endpointTaken } from "../../api/decide/dra/registration.ts";
import type { PluginHandler } from "../deviceplugin/watcher.ts";
import type { DeviceHealth } from "./device-health.ts";
import { DraDriver } from "./driver.ts";

/** The maximum number of drivers, since registering a name is free. */
const MAX_DRIVERS = 256;

interface RegistryOptions {
  /** Time limit of a call to a driver. */
  readonly timeoutMs?: number;
  /** The device health; absent: drivers are not asked for it. */
  readonly health?: Pick<DeviceHealth, "watch">;
  /** Called when drivers come or go. */
  readonly onChange: () => void;
}

interface Plugin {
  readonly generation: number;
  readonly driver: DraDriver;
  /** Ends the stream of its devices' health. */
  readonly unwatch: (() => void) | undefined;
}

/** The registered DRA drivers, each with its plugins in order of registration. kubelet 1.37: DRAPluginManager. */
export class DraRegistry {
  readonly #options: RegistryOptions;
  readonly #plugins = new Map<string, Plugin[]>();
  #generation = 0;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Handles plugins in plugins_registry of type `DRAPlugin`. */
  readonly handler: PluginHandler = {
    fault: ({ name, supportedVersions }, endpoint) => {
      const service = chooseService(supportedVersions);
      return service.ok
        ? undefined
        : `invalid supported gRPC versions of DRA driver plugin ${name} at endpoint ${endpoint}: ${service.error}`;
    },
    register: async ({ name, supportedVersions }, endpoint) => {
      const refused = (message: string) =>
        err({ resource: name, endpoint, call: "Register", code: "REFUSED", message });
      const service = chooseService(supportedVersions);
      if (!service.ok) return refused(service.error);
      const known = this.#plugins.get(name) ?? [];
      if (known.some(({ driver }) => driver.endpoint === endpoint)) return refused(endpointTaken(name, endpoint));
      if (known.length === 0 && this.#plugins.size >= MAX_DRIVERS) {
        return refused(`${MAX_DRIVERS} DRA drivers are registered already, and no more are taken`);
      }
      const driver = new DraDriver(name, endpoint, service.value, this.#options.timeoutMs);
      const generation = ++this.#generation;
      const unwatch = this.#options.health?.watch(driver, supportedVersions);
      this.#plugins.set(name, [...known, { generation, driver, unwatch }]);
      this.#options.onChange();
      return ok(generation);
    },
    leave: (name, generation) => {
      const known = this.#plugins.get(name) ?? [];
      const plugin = known.find((one) => one.generation === generation);
      plugin?.unwatch?.();
      plugin?.driver.close();
      const left = known.filter((one) => one.generation !== generation);
      if (left.length === 0) this.#plugins.delete(name);
      else this.#plugins.set(name, left);
      this.#options.onChange();
    },
  };

  /** The newest plugin of a driver that can be reached, else the newest. kubelet 1.37: DRAPluginManager.get. */
  driver(name: string): DraDriver | undefined {
    const drivers = (this.#plugins.get(name) ?? []).map(({ driver }) => driver);
    return drivers.findLast(({ isConnected }) => isConnected) ?? drivers.at(-1);
  }
  isRegistered(name: string): boolean {
    return this.#plugins.has(name);
  }
  /** `dra.drivers` of a snapshot. */
  drivers(): readonly { readonly name: string; readonly services: readonly string[] }[] {
    const names = [...this.#plugins.keys()].sort();
    return names.map((name) => ({ name, services: [(this.driver(name) as DraDriver).service] }));
  }
  close(): void {
    for (const plugins of this.#plugins.values()) for (const { driver } of plugins) driver.close();
    this.#plugins.clear();
  }
}
