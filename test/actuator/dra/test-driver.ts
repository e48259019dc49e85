import { rmSync } from "node:fs";
import { join } from "node:path";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { draServiceOf, healthServiceOf } from "../../../actuator/dra/driver.ts";
import type { NodeOperation } from "../../../api/decide/dra/claim-info.ts";
import {
  DRA_SERVICES,
  type DraService,
  HEALTH_SERVICES,
  type HealthService,
} from "../../../api/decide/dra/registration.ts";
import { introduce } from "../deviceplugin/node-plugin.ts";

export interface Asked {
  readonly claims: readonly { readonly namespace: string; readonly name: string; readonly uid: string }[];
}
/** A device in a report; `health`: 1 is healthy, 2 is unhealthy. */
export interface DeviceReport {
  readonly device: { readonly poolName: string; readonly deviceName: string };
  readonly health: number;
  readonly healthCheckTimeoutSeconds?: number;
  readonly message?: string;
}
/** A Buffer: the encoded message. */
type Answered = object | Buffer | Error | "hang";
type Answer = (asked: Asked) => Answered | Promise<Answered>;

export interface DriverScript {
  readonly dir: string;
  readonly name: string;
  /** The name of the driver's socket. */
  readonly socket?: string;
  readonly services?: readonly string[];
  /** The versions of the device health service that the driver serves. */
  readonly health?: readonly HealthService[];
  /** False: the driver's devices need no CDI devices in the runtime. */
  readonly cdi?: boolean;
  /** Answers that replace success, by operation. */
  answers?: Partial<Record<NodeOperation, Answer>>;
}

/** A service whose answers may already be encoded. */
const sending = (service: ReturnType<typeof draServiceOf>): object =>
  Object.fromEntries(
    Object.entries(service).map(([name, method]) => {
      const encode = (answer: object) => (Buffer.isBuffer(answer) ? answer : method.responseSerialize(answer));
      return [name, { ...method, responseSerialize: encode }];
    }),
  );

/**
 * A DRA driver as vendors write them, over a real socket: it prepares one device for each claim, and follows its
 * script.
 */
export class TestDriver {
  readonly script: DriverScript;
  readonly calls: { readonly operation: NodeOperation; readonly service: DraService; readonly claims: string[] }[] = [];
  readonly notified: { readonly pluginRegistered: boolean; readonly error: string }[] = [];
  /** The uids of the claims that are prepared at present. */
  readonly prepared = new Set<string>();
  /** The open device health streams, the newest last. */
  readonly watchers: { readonly service: HealthService; readonly call: ServerWritableStream<object, object> }[] = [];
  /** The last report, with which each new stream begins; empty: no report yet. */
  devices: readonly DeviceReport[] = [];
  #server: Server | undefined;

  constructor(script: DriverScript) {
    this.script = script;
  }
  get socketPath(): string {
    return join(this.script.dir, this.script.socket ?? `${this.script.name}.sock`);
  }
  async serve(): Promise<void> {
    const server = new Server();
    const info = {
      type: "DRAPlugin",
      name: this.script.name,
      endpoint: "",
      supportedVersions: [...(this.script.services ?? DRA_SERVICES), ...(this.script.health ?? [])],
    };
    introduce(server, info, this.notified);
    for (const service of DRA_SERVICES) {
      const answer = (operation: NodeOperation) => this.#answer(service, operation);
      server.addService(sending(draServiceOf(service)) as never, {
        NodePrepareResources: answer("NodePrepareResources"),
        NodeUnprepareResources: answer("NodeUnprepareResources"),
      });
    }
    for (const service of HEALTH_SERVICES.filter((one) => this.script.health?.includes(one))) {
      server.addService(healthServiceOf(service) as never, {
        NodeWatchResources: (call: ServerWritableStream<object, object>) => {
          this.watchers.push({ service, call });
          if (this.devices.length > 0) call.write({ devices: this.devices });
        },
      });
    }
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix://${this.socketPath}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }
  #answer(service: DraService, operation: NodeOperation) {
    return async ({ request }: ServerUnaryCall<Asked, object>, done: sendUnaryData<object>): Promise<void> => {
      this.calls.push({ operation, service, claims: request.claims.map(({ name }) => name) });
      const answer = await (this.script.answers?.[operation] ?? ((asked) => this.usual(operation, asked)))(request);
      if (answer === "hang") return;
      if (answer instanceof Error) done({ code: status.UNKNOWN, details: answer.message });
      else done(null, answer);
    };
  }
  /** The answer to an operation for which the script has none. */
  usual(operation: NodeOperation, { claims }: Asked): object {
    const reported = claims.map(({ name, uid }) => {
      if (operation === "NodeUnprepareResources") {
        this.prepared.delete(uid);
        return [uid, {}];
      }
      this.prepared.add(uid);
      const cdiDeviceIds = this.script.cdi === false ? [] : [`${this.script.name}/dev=${name}`];
      return [uid, { devices: [{ requestNames: ["gpu"], poolName: "n", deviceName: name, cdiDeviceIds }] }];
    });
    return { claims: Object.fromEntries(reported) };
  }
  /** Sends a report on all streams. */
  report(...devices: readonly DeviceReport[]): void {
    this.devices = devices;
    for (const { call } of this.watchers) call.write({ devices });
  }
  /** Ends as a crashed process does: its connections are closed, and its socket file stays. */
  die(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }
  vanish(): void {
    this.die();
    rmSync(this.socketPath, { force: true });
  }
}
