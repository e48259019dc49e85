import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

type Call = ServerUnaryCall<{ readonly service: string }, unknown>;
/** A server's answer to a health check; null: the server does not serve the health service. */
export type Check = ((call: Call, answer: sendUnaryData<unknown>) => void) | null;

const proto = new URL("../../../actuator/probes/grpc/health.proto", import.meta.url).pathname;
const health = (loadPackageDefinition(loadSync(proto)) as never as Loaded).grpc.health.v1.Health;
interface Loaded {
  readonly grpc: { readonly health: { readonly v1: { readonly Health: { readonly service: never } } } };
}

/** A gRPC server of Node's own library, on loopback by default. */
export async function healthServer(
  check: Check,
  address = "127.0.0.1:0",
): Promise<AsyncDisposable & { readonly port: number }> {
  const server = new Server();
  if (check !== null) server.addService(health.service, { Check: check });
  const port = await new Promise<number>((resolve, reject) => {
    const bound = (error: Error | null, port: number): void => (error === null ? resolve(port) : reject(error));
    server.bindAsync(address, ServerCredentials.createInsecure(), bound);
  });
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}
