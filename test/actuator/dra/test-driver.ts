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
/** A device in a report; `health`: 1 is well, 2 is ill. */
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
  /** The name of its socket. */
  readonly socket?: string;
  readonly services?: readonly string[];
  /** The services of its devices' health; the others it does not know. */
  readonly health?: readonly HealthService[];
  /** False: its devices need nothing of the runtime. */
  readonly cdi?: boolean;
  /** Answers in place of success, by operation. */
  answers?: Partial<Record<NodeOperation, Answer>>;
}

/** A service whose answers may be encoded already. */
const sending = (service: ReturnType<typeof draServiceOf>): object =>
  Object.fromEntries(
    Object.entries(service).map(([name, method]) => {
      const encode = (answer: object) => (Buffer.isBuffer(answer) ? answer : method.responseSerialize(answer));
      return [name, { ...method, responseSerialize: encode }];
    }),
  );

/** A DRA driver as vendors write them, over a real socket: it gives each claim one device, and does what its script says. */
export class TestDriver {
  readonly script: DriverScript;
  readonly calls: { readonly operation: NodeOperation; readonly service: DraService; readonly claims: string[] }[] = [];
  readonly notified: { readonly pluginRegistered: boolean; readonly error: string }[] = [];
  /** Uids of the claims that are prepared now. */
  readonly prepared = new Set<string>();
  /** The streams of its devices' health, the last the newest. */
  readonly watchers: { readonly service: HealthService; readonly call: ServerWritableStream<object, object> }[] = [];
  /** The last report, which each new stream begins with; empty: none yet. */
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
  /** As it answers where its script says nothing else. */
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
  /** Tells whoever listens. */
  report(...devices: readonly DeviceReport[]): void {
    this.devices = devices;
    for (const { call } of this.watchers) call.write({ devices });
  }
  /** It dies: its connections end, its socket stays. */
  die(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }
  vanish(): void {
    this.die();
    rmSync(this.socketPath, { force: true });
  }
}
