import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceDefinition,
  type ServiceError,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { loadSync, type PackageDefinition } from "@grpc/proto-loader";
import { err, ok } from "../../api/base/result.ts";
import { faultOf, type PluginCall, type PluginResult } from "./fault.ts";
import { MAX_MESSAGE_BYTES, type PluginCalls, type PluginMethod } from "./names.ts";

type Loaded = MethodDefinition<object, object>;
let loaded: PackageDefinition | undefined;

/** The files are parsed at the first use. */
function definitions(): PackageDefinition {
  const files = ["deviceplugin.proto", "pluginregistration.proto"].map((file) => join(import.meta.dirname, file));
  loaded ??= loadSync(files, { longs: Number, defaults: true });
  return loaded;
}

/** A service by its full name, `v1beta1.Registration`. */
export const serviceOf = (name: string): ServiceDefinition<UntypedServiceImplementation> =>
  definitions()[name] as unknown as ServiceDefinition<UntypedServiceImplementation>;

/** The codec of a method's request and response; the response of Allocate stays raw bytes. */
function codecOf<M extends PluginMethod>(
  method: M,
): {
  readonly write: (request: PluginCalls[M][0]) => Buffer;
  readonly read: (bytes: Buffer) => PluginCalls[M][1];
} {
  const { requestSerialize, responseDeserialize } = methodAt(method);
  const read = method.endsWith("/Allocate") ? (bytes: Buffer) => bytes : responseDeserialize;
  return {
    write: requestSerialize as (request: PluginCalls[M][0]) => Buffer,
    read: read as (bytes: Buffer) => PluginCalls[M][1],
  };
}

export const LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch";

/** A method by its path, `/v1beta1.Registration/Register`. */
export function methodAt(path: string): Loaded {
  const [, service, method] = path.split("/") as [string, string, string];
  return (serviceOf(service) as unknown as Record<string, Loaded>)[method] as Loaded;
}

const CHANNEL = {
  // the default authority would be the socket's path, which is not valid
  "grpc.default_authority": "localhost",
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  "grpc.enable_http_proxy": 0,
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  // channelz counts every message for a page that is not served
  "grpc.enable_channelz": 0,
};
export const clientOf = (socketPath: string): Client =>
  new Client(`unix://${socketPath}`, credentials.createInsecure(), CHANNEL);

interface CallOptions {
  readonly of: PluginCall;
  readonly timeoutMs: number;
  /** Ends the call at once. */
  readonly signal: AbortSignal;
}

/** Makes one call with a deadline; a fault names its plugin. */
export function callOnce<M extends PluginMethod>(
  client: Client,
  { of, timeoutMs, signal }: CallOptions,
  method: M,
  request: PluginCalls[M][0],
): PluginResult<PluginCalls[M][1]> {
  return callWith(client, { of, timeoutMs, signal }, { path: method, ...codecOf(method) }, request);
}

/** The codec of a method, by its path. */
interface MethodCodec<Request, Answer> {
  readonly path: string;
  readonly write: (request: Request) => Buffer;
  readonly read: (bytes: Buffer) => Answer;
}
/** Makes one call of a method that other types of plugins serve. */
export function callWith<Request, Answer>(
  client: Client,
  { of, timeoutMs, signal }: CallOptions,
  { path, write, read }: MethodCodec<Request, Answer>,
  request: Request,
): PluginResult<Answer> {
  return new Promise((resolve) => {
    const done = (error: ServiceError | null, answer?: Answer): void => {
      signal.removeEventListener("abort", cancel);
      resolve(error === null ? ok(answer as Answer) : err(faultOf(of, error, timeoutMs)));
    };
    const options = { deadline: Date.now() + timeoutMs };
    const call = client.makeUnaryRequest(path, write, read, request, new Metadata(), options, done);
    const cancel = (): void => call.cancel();
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  });
}

const POLL_MS = 100;

/**
 * Makes the first call to a plugin, and returns the client with the response: a plugin that registers just before it serves is
 * awaited. kubelet 1.36: dial (10 s), whose words begin the fault of a connection.
 */
export async function dial<M extends PluginMethod>(
  calling: CallOptions,
  dialMs: number,
  method: M,
  request: PluginCalls[M][0],
): PluginResult<{ readonly client: Client; readonly answer: PluginCalls[M][1] }> {
  for (const deadline = performance.now() + dialMs; ; await sleep(POLL_MS)) {
    const client = clientOf(calling.of.endpoint);
    const answer = await callOnce(client, calling, method, request);
    if (answer.ok) return ok({ client, answer: answer.value });
    client.close();
    const { error } = answer;
    if (error.code !== "UNAVAILABLE") return err(error);
    if (calling.signal.aborted || performance.now() + POLL_MS > deadline) {
      return err({ ...error, message: `failed to dial device plugin: ${error.message}` });
    }
  }
}
