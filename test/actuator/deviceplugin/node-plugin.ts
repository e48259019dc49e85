import { readdirSync, rmSync, watch } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { serviceOf } from "../../../actuator/deviceplugin/plugin-client.ts";

export interface PluginDevice {
  readonly ID: string;
  readonly health?: string;
  readonly topology?: { readonly nodes: readonly { readonly ID: number }[] };
}
type Answer = (request: Record<string, unknown>) => object | Error | "hang";

export interface PluginScript {
  readonly dir: string;
  readonly resource: string;
  /** The name of the plugin's socket. */
  readonly name?: string;
  readonly devices?: readonly PluginDevice[];
  readonly options?: object;
  /** Answers by method; the plugin answers a method that is absent here with success. */
  answers?: Partial<
    Record<"GetDevicePluginOptions" | "GetPreferredAllocation" | "Allocate" | "PreStartContainer", Answer>
  >;
  /** The plugin sends nothing on its stream by itself. */
  readonly silent?: boolean;
  /** The plugin is discovered by the plugin watcher: it serves GetInfo on the same socket. */
  readonly info?: object;
}

const MAX_BYTES = 64 * 1024 * 1024;

interface Notification {
  readonly pluginRegistered: boolean;
  readonly error: string;
}
/** Serves the plugin's registration: GetInfo returns `info`, and `notified` records the results. */
export function introduce(server: Server, info: object, notified: Notification[]): void {
  server.addService(serviceOf("pluginregistration.Registration"), {
    GetInfo: (_call: unknown, done: sendUnaryData<object>) => done(null, info),
    NotifyRegistrationStatus: ({ request }: ServerUnaryCall<Notification, object>, done: sendUnaryData<object>) => {
      notified.push(request);
      done(null, {});
    },
  });
}

/** A device plugin as vendors write them, over a real socket; a script defines its behaviour. */
export class NodePlugin {
  readonly script: PluginScript;
  readonly requests: { method: string; request: Record<string, unknown> }[] = [];
  /** The calls of NotifyRegistrationStatus. */
  readonly notified: { pluginRegistered: boolean; error: string }[] = [];
  readonly streams = new Set<ServerWritableStream<object, object>>();
  #server: Server | undefined;
  #devices: readonly PluginDevice[];

  constructor(script: PluginScript) {
    this.script = script;
    this.#devices = script.devices ?? [];
  }
  get socketPath(): string {
    return join(this.script.dir, this.script.name ?? `${this.script.resource.replace("/", "_")}.sock`);
  }

  async serve(): Promise<void> {
    const server = new Server({ "grpc.max_send_message_length": MAX_BYTES });
    const answer =
      (method: keyof NonNullable<PluginScript["answers"]>, usual: (request: Record<string, unknown>) => object) =>
      ({ request }: ServerUnaryCall<Record<string, unknown>, object>, done: sendUnaryData<object>) => {
        this.requests.push({ method, request });
        const value = (this.script.answers?.[method] ?? usual)(request);
        if (value === "hang") return;
        if (value instanceof Error) done({ code: status.UNKNOWN, details: value.message });
        else done(null, value);
      };
    server.addService(serviceOf("v1beta1.DevicePlugin"), {
      GetDevicePluginOptions: answer("GetDevicePluginOptions", () => this.script.options ?? {}),
      ListAndWatch: (stream: ServerWritableStream<object, object>) => {
        this.streams.add(stream);
        stream.on("close", () => this.streams.delete(stream));
        stream.on("cancelled", () => this.streams.delete(stream));
        if (this.script.silent !== true) stream.write({ devices: this.#devices });
      },
      GetPreferredAllocation: answer("GetPreferredAllocation", () => ({ containerResponses: [] })),
      Allocate: answer("Allocate", () => ({ containerResponses: [{ envs: { SEEN: "yes" } }] })),
      PreStartContainer: answer("PreStartContainer", () => ({})),
    });
    if (this.script.info !== undefined) introduce(server, this.script.info, this.notified);
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.socketPath}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }

  /** Serves its socket and registers. */
  async start(): Promise<void> {
    await this.serve();
    await this.register();
  }
  register(request: object = {}): Promise<void> {
    const { dir, resource } = this.script;
    const endpoint = this.socketPath.slice(dir.length + 1);
    return register(join(dir, "kubelet.sock"), { version: "v1beta1", endpoint, resourceName: resource, ...request });
  }

  /** Sends the whole list on all streams. */
  list(devices: readonly PluginDevice[]): void {
    this.#devices = devices;
    for (const stream of this.streams) stream.write({ devices });
  }
  endStreams(): void {
    for (const stream of this.streams) stream.end();
  }
  /** Stops like a killed process; `leave`: its socket file stays. */
  async vanish(leave = false): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.forceShutdown();
    this.streams.clear();
    await sleep(10);
    if (!leave) rmSync(this.socketPath, { force: true });
  }

  /**
   * Registers again as real plugins do: when kubelet.sock is created anew, or when the plugin's own socket was removed.
   * Returns a function that ends this.
   */
  comeBack(on: "kubelet.sock" | "own socket"): () => void {
    let busy = false;
    let stopped = false;
    const isBack = async (): Promise<boolean> => {
      await this.vanish();
      return this.start().then(
        () => true,
        () => false,
      );
    };
    const again = async (): Promise<void> => {
      if (busy) return;
      busy = true;
      // the server may not listen yet on a socket file that was just created
      while (!stopped && !(await isBack())) await sleep(50);
      busy = false;
    };
    const watcher = watch(this.script.dir, { persistent: false }, (_event, name) => {
      const names = readdirSync(this.script.dir);
      if (on === "kubelet.sock" && name === "kubelet.sock" && names.includes(name)) void again();
      const own = this.socketPath.slice(this.script.dir.length + 1);
      if (on === "own socket" && name === own && !names.includes(own)) {
        const whenItIsBack = async (): Promise<void> => {
          while (!readdirSync(this.script.dir).includes("kubelet.sock")) await sleep(20);
          await again();
        };
        void whenItIsBack();
      }
    });
    return () => {
      stopped = true;
      watcher.close();
    };
  }
}

/** Calls v1beta1.Registration/Register as a plugin does, with several requests at a time over one connection. */
export async function register(socketPath: string, ...requests: readonly object[]): Promise<void> {
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure());
  const method = serviceOf("v1beta1.Registration")["Register"];
  if (method === undefined) throw new Error("no such method");
  const ask = (request: object): Promise<void> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        { deadline: Date.now() + 30_000 },
        (error: ServiceError | null) => (error === null ? resolve() : reject(error)),
      );
    });
  await Promise.all(requests.map(ask)).finally(() => client.close());
}

export const healthy = (...ids: readonly string[]): PluginDevice[] => ids.map((ID) => ({ ID, health: "Healthy" }));

/** Waits until `is` accepts the value of `look`; the error contains the last value. */
export async function until<T>(look: () => T, is: (value: T) => boolean, ms = 30_000): Promise<T> {
  for (const deadline = performance.now() + ms; ; await sleep(10)) {
    const value = look();
    if (is(value)) return value;
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms; it is ${JSON.stringify(value)}`);
  }
}
