import { join } from "node:path";
import { Server, ServerCredentials, type ServerWritableStream, type sendUnaryData } from "@grpc/grpc-js";
import { serviceOf } from "../../actuator/deviceplugin/plugin-client.ts";
import { register } from "../actuator/deviceplugin/node-plugin.ts";

/**
 * The task of the plugins: this many health flips per second, either all in the first plugin or in each plugin in turn;
 * 0: no flips.
 */
export interface FlipOrder {
  readonly flipsPerSecond: number;
  readonly on: "one" | "all";
}
export interface PluginFigures {
  readonly flips: number;
  /** The number of lists that were sent. While the node does not read, a plugin skips to its newest list. */
  readonly lists: number;
  readonly healthy: number;
}

const [dir = "", pluginCount, firstDevices, otherDevices] = process.argv.slice(2);
const TICK_MS = 10;
const SERVICE = serviceOf("v1beta1.DevicePlugin");
/**
 * Both words have the same length, so that a flip changes bytes in place. Every value but `Healthy` means unhealthy.
 */
const HEALTHY = Buffer.from("Healthy");
const ILL = Buffer.from("Damaged");

/**
 * A plugin that keeps its list as encoded bytes, which makes its lists as cheap as those of plugins in a compiled
 * language. It waits while the node does not read.
 */
class BytesPlugin {
  readonly #bytes: Buffer;
  /** The byte offset of each device's health. */
  readonly #healthAt: readonly number[];
  #next = 0;
  #stream: ServerWritableStream<object, Buffer> | undefined;
  #isBlocked = false;
  #isStale = false;
  lists = 0;
  flips = 0;
  ill = 0;

  constructor(devices: number) {
    const all = Array.from({ length: devices }, (_, i) => ({
      ID: `device-${String(i).padStart(5, "0")}-of-a-bench`,
      health: "Healthy",
      topology: { nodes: [{ ID: i % 2 }] },
    }));
    this.#bytes = SERVICE["ListAndWatch"]?.responseSerialize({ devices: all }) ?? Buffer.alloc(0);
    const places: number[] = [];
    for (let at = this.#bytes.indexOf(HEALTHY); at >= 0; at = this.#bytes.indexOf(HEALTHY, at + 1)) places.push(at);
    this.#healthAt = places;
  }

  async start(resource: string): Promise<void> {
    const server = new Server();
    const { ListAndWatch, GetDevicePluginOptions, Allocate } = SERVICE;
    if (ListAndWatch === undefined || GetDevicePluginOptions === undefined || Allocate === undefined)
      throw new Error("no such methods");
    const inBytes = { ...ListAndWatch, responseSerialize: (bytes: Buffer) => bytes };
    const handlers = {
      GetDevicePluginOptions: (_call: unknown, done: sendUnaryData<object>) => done(null, {}),
      Allocate: (_call: unknown, done: sendUnaryData<object>) => done(null, { containerResponses: [{}] }),
      ListAndWatch: (stream: ServerWritableStream<object, Buffer>) => {
        this.#stream = stream;
        this.#send();
      },
    };
    server.addService({ GetDevicePluginOptions, Allocate, ListAndWatch: inBytes } as never, handlers as never);
    const name = `${resource.replace("/", "_")}.sock`;
    await new Promise<void>((done, failed) => {
      const bound = (error: Error | null): void => (error === null ? done() : failed(error));
      server.bindAsync(`unix:${join(dir, name)}`, ServerCredentials.createInsecure(), bound);
    });
    await register(join(dir, "kubelet.sock"), { version: "v1beta1", endpoint: name, resourceName: resource });
  }

  flip(): void {
    const at = this.#healthAt[this.#next++ % this.#healthAt.length] as number;
    const isHealthy = this.#bytes.compare(HEALTHY, 0, HEALTHY.length, at, at + HEALTHY.length) === 0;
    (isHealthy ? ILL : HEALTHY).copy(this.#bytes, at);
    this.ill += isHealthy ? 1 : -1;
    this.flips++;
    this.#isStale = true;
    if (!this.#isBlocked) this.#send();
  }

  #send(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#isStale = false;
    this.lists++;
    if (stream.write(Buffer.from(this.#bytes))) return;
    this.#isBlocked = true;
    stream.once("drain", () => {
      this.#isBlocked = false;
      if (this.#isStale) this.#send();
    });
  }
}

const plugins = Array.from(
  { length: Number(pluginCount) },
  (_, i) => new BytesPlugin(Number(i === 0 ? firstDevices : otherDevices)),
);
await Promise.all(plugins.map((plugin, i) => plugin.start(`bench.example.com/kind-${i}`)));

let ticking: NodeJS.Timeout | undefined;
process.on("message", ({ flipsPerSecond, on }: FlipOrder) => {
  clearInterval(ticking);
  const began = performance.now();
  let made = 0;
  const tick = (): void => {
    for (const due = ((performance.now() - began) * flipsPerSecond) / 1000; made < due; made++)
      plugins[on === "one" ? 0 : made % plugins.length]?.flip();
  };
  if (flipsPerSecond > 0) ticking = setInterval(tick, TICK_MS);
  const sum = (of: (plugin: BytesPlugin) => number): number => plugins.reduce((all, plugin) => all + of(plugin), 0);
  const devices = Number(firstDevices) + (plugins.length - 1) * Number(otherDevices);
  const figures: PluginFigures = {
    flips: sum(({ flips }) => flips),
    lists: sum(({ lists }) => lists),
    healthy: devices - sum(({ ill }) => ill),
  };
  process.send?.(figures);
});
process.on("disconnect", () => process.exit());
process.send?.("registered");
