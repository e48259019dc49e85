import { rmSync } from "node:fs";
import { join } from "node:path";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { draServiceOf } from "../../../actuator/dra/driver.ts";
import type { NodeOperation } from "../../../api/decide/dra/claim-info.ts";
import { DRA_SERVICES, type DraService } from "../../../api/decide/dra/registration.ts";
import { introduce } from "../deviceplugin/node-plugin.ts";

export interface Asked {
  readonly claims: readonly { readonly namespace: string; readonly name: string; readonly uid: string }[];
}
type Answer = (asked: Asked) => object | Error | "hang";

export interface DriverScript {
  readonly dir: string;
  readonly name: string;
  /** The name of its socket. */
  readonly socket?: string;
  readonly services?: readonly string[];
  /** False: its devices need nothing of the runtime. */
  readonly cdi?: boolean;
  /** What is not here is answered well. */
  answers?: Partial<Record<NodeOperation, Answer>>;
}

/** A DRA driver as vendors write them, over a real socket: it gives each claim one device, and does what its script says. */
export class TestDriver {
  readonly script: DriverScript;
  readonly calls: { readonly operation: NodeOperation; readonly service: DraService; readonly claims: string[] }[] = [];
  readonly notified: { readonly pluginRegistered: boolean; readonly error: string }[] = [];
  /** Uids of the claims that are prepared now. */
  readonly prepared = new Set<string>();
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
      supportedVersions: this.script.services ?? DRA_SERVICES,
    };
    introduce(server, info, this.notified);
    for (const service of DRA_SERVICES) {
      const answer = (operation: NodeOperation) => this.#answer(service, operation);
      server.addService(draServiceOf(service) as never, {
        NodePrepareResources: answer("NodePrepareResources"),
        NodeUnprepareResources: answer("NodeUnprepareResources"),
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
    return ({ request }: ServerUnaryCall<Asked, object>, done: sendUnaryData<object>): void => {
      this.calls.push({ operation, service, claims: request.claims.map(({ name }) => name) });
      const answer = (this.script.answers?.[operation] ?? ((asked: Asked) => this.usual(operation, asked)))(request);
      if (answer === "hang") return;
      if (answer instanceof Error) done({ code: status.UNKNOWN, details: answer.message });
      else done(null, answer);
    };
  }
  /** As it answers where its script says nothing else. */
  usual(operation: NodeOperation, { claims }: Asked): object {
    const told = claims.map(({ name, uid }) => {
      if (operation === "NodeUnprepareResources") {
        this.prepared.delete(uid);
        return [uid, {}];
      }
      this.prepared.add(uid);
      const cdiDeviceIds = this.script.cdi === false ? [] : [`${this.script.name}/dev=${name}`];
      return [uid, { devices: [{ requestNames: ["gpu"], poolName: "n", deviceName: name, cdiDeviceIds }] }];
    });
    return { claims: Object.fromEntries(told) };
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
