import type { DeviceList } from "./device-list.ts";
import type { Endpoint } from "./endpoint.ts";
import type { PluginFault } from "./fault.ts";
import type { ListThrottle } from "./list-throttle.ts";

export interface ListAndWatchStreamOptions {
  /** From its first list until the stream counts as one that lives, ms. */
  readonly livesMs: number;
  readonly load: ListThrottle;
  /** Devices that it may list. */
  readonly most: () => number;
  readonly onList: () => void;
  readonly onLives: () => void;
  readonly onEnd: (fault: PluginFault) => void;
}

/** The stream of one plugin: its last list, and whether it has lived for a while. */
export class ListAndWatchStream {
  readonly resource: string;
  readonly socketPath: string;
  readonly endpoint: Endpoint;
  /** The plugin's generation while this stream has it registered; 0: it is not registered. */
  generation = 0;
  #list: DeviceList | undefined;
  #lives: NodeJS.Timeout | undefined;

  constructor(resource: string, socketPath: string, endpoint: Endpoint) {
    this.resource = resource;
    this.socketPath = socketPath;
    this.endpoint = endpoint;
  }

  get list(): DeviceList | undefined {
    return this.#list;
  }
  /** The part of its last list that was left out; null: nothing. */
  get leftOut(): PluginFault | null {
    const message = this.#list?.remarks.join("; ") ?? "";
    const { resource, socketPath: endpoint } = this;
    return message === ""
      ? null
      : { resource, endpoint, call: "ListAndWatch", code: "LEFT_OUT", message, stands: true };
  }

  open({ livesMs, load, most, onList, onLives, onEnd }: ListAndWatchStreamOptions): void {
    this.endpoint.watch({
      most,
      load,
      onList: (list) => {
        this.#list = list;
        this.#lives ??= setTimeout(() => onLives(), livesMs).unref();
        onList();
      },
      onEnd: (fault) => {
        clearTimeout(this.#lives);
        onEnd(fault);
      },
    });
  }
  close(): void {
    clearTimeout(this.#lives);
    this.endpoint.close();
  }
}
