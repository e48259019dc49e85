import { join, resolve } from "node:path";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  type status,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { CriMethod, Image } from "../../../actuator/containerd/messages.ts";

const PROTOS = resolve(import.meta.dirname, "../../../actuator/containerd");

/** How a call ends that is not forwarded to the runtime. */
export type Failure = "hang" | { readonly code: status; readonly details: string };
export interface Meddling {
  /** Ids of images to report as pinned: containerd 1.6 pins no image. */
  readonly pinned?: ReadonlySet<string>;
  /** Called before each call of the client; the failure to return, if any. */
  readonly fails?: (method: CriMethod, request: unknown) => Failure | undefined;
  /**
   * Awaited before a call is forwarded to the runtime; if the promise never settles, the call never reaches the
   * runtime.
   */
  readonly before?: (method: CriMethod, request: unknown) => void | Promise<void>;
  /** Awaited when the runtime has carried out a call, before the caller gets the response. */
  readonly after?: (method: CriMethod, request: unknown) => void | Promise<void>;
}
export interface Meddler {
  readonly endpoint: string;
  /** Every call that arrived, in order. */
  readonly calls: readonly CriMethod[];
  /** The runtime has no call left to work on: it also finishes calls whose caller has exited. */
  isQuiet(): boolean;
  close(): Promise<void>;
}

/**
 * A CRI server on a socket in `dir` that forwards the calls to another runtime, with the changes that `meddling`
 * describes.
 */
export async function startMeddler(dir: string, to: Connection, meddling: () => Meddling): Promise<Meddler> {
  const calls: CriMethod[] = [];
  let underWay = 0;
  const unary = (method: CriMethod) => (call: ServerUnaryCall<never, unknown>, reply: sendUnaryData<unknown>) => {
    calls.push(method);
    const failure = meddling().fails?.(method, call.request);
    if (failure === "hang") return;
    if (failure !== undefined) return reply(failure);
    forward(method, call.request).then(
      (answer) => {
        if (answer.ok) reply(null, pinnedIn(answer.value, meddling().pinned));
        else reply({ code: CODES.indexOf(answer.error.code), details: answer.error.message });
      },
      (error) => reply({ code: CODES.indexOf("UNKNOWN"), details: `the meddler: ${error}` }),
    );
  };
  const forward = async (method: CriMethod, request: never) => {
    await meddling().before?.(method, request);
    underWay++;
    const answer = await to.call(method, request).finally(() => underWay--);
    if (answer.ok) await meddling().after?.(method, request);
    return answer;
  };
  const blobs = (call: ServerWritableStream<unknown, unknown>) =>
    void to.blobs().then((answer) => {
      if (answer.ok) {
        call.write({ info: answer.value });
        call.end();
      } else call.emit("error", { code: CODES.indexOf(answer.error.code), details: answer.error.message });
    });
  const server = new Server();
  const options = { longs: String, enums: String, defaults: true };
  for (const definition of Object.values(
    loadSync([join(PROTOS, "runtime.proto"), join(PROTOS, "content.proto")], options),
  )) {
    if ("format" in definition) continue;
    const handlers = Object.keys(definition).map((method): [string, UntypedHandleCall] => [
      method,
      (method === "List" ? blobs : unary(method as CriMethod)) as UntypedHandleCall,
    ]);
    server.addService(definition as ServiceDefinition, Object.fromEntries(handlers));
  }
  const endpoint = `unix://${join(dir, "meddler.sock")}`;
  await new Promise<void>((done, failed) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? failed(error) : done())),
  );
  return { endpoint, calls, isQuiet: () => underWay === 0, close: async () => server.forceShutdown() };
}

/** gRPC's codes by number. */
const CODES = (
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
  "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split(" ");

function pinnedIn(answer: unknown, pinned: ReadonlySet<string> = new Set()): unknown {
  const pin = (image: Image): Image => ({ ...image, pinned: image.pinned || pinned.has(image.id) });
  const { images, image } = answer as { readonly images?: readonly Image[]; readonly image?: Image | null };
  if (images !== undefined) return { ...(answer as object), images: images.map(pin) };
  return image ? { ...(answer as object), image: pin(image) } : answer;
}
