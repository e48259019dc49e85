import { join } from "node:path";
import { Client, credentials, Metadata, type MethodDefinition, type ServiceError, status } from "@grpc/grpc-js";
import { type MethodDefinition as LoadedMethod, loadSync } from "@grpc/proto-loader";
import { err, ok, type Result } from "../../api/base/result.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { millisIn } from "../../api/profiles/profile.ts";
import { socketPathOf } from "../core/addresses.ts";
import { isOwnDeadline } from "../grpc/fault.ts";
import type { RuntimeFault, RuntimeResult } from "./cri.ts";
import { faultOf } from "./fault.ts";
import type { Blob, CriAnswer, CriMethod, CriRequest } from "./messages.ts";

/** The kubelet's runtimeRequestTimeout. */
const DEFAULT_TIMEOUT_MS = millisIn(NEWEST.defaults.runtimeRequestTimeout);
/** A list of 10,000 containers with their labels and annotations exceeds the 16 MB limit of other clients. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const CHANNEL = {
  "grpc.max_receive_message_length": MAX_ANSWER_BYTES,
  "grpc.enable_http_proxy": 0,
  "grpc.use_local_subchannel_pool": 1,
};
/** The timeout of the content service, which only refines an estimate. */
const LONGEST_BLOBS_MS = 10_000;
const CONTENT_LIST = "/containerd.services.content.v1.Content/List";
/** containerd's namespace for everything of CRI. */
const NAMESPACE = "k8s.io";

export interface ConnectionOptions {
  /** `unix:///run/containerd/containerd.sock`, or the path alone. */
  readonly endpoint: string;
  /** Deadline of each call; 2 minutes if absent. */
  readonly timeoutMs?: number;
  /** Called for each failed call. */
  readonly onFault?: (fault: RuntimeFault) => void;
}

/**
 * The only access to a container runtime's socket: every call has a deadline, and every failure is a fault with
 * advice.
 */
export interface Connection {
  /** Deadline of each call. */
  readonly timeoutMs: number;
  /** `extraMs`: on top of the deadline, for calls that wait for a process. */
  call<M extends CriMethod>(method: M, request: CriRequest<M>, extraMs?: number): RuntimeResult<CriAnswer<M>>;
  /** The blobs of containerd's content store; other runtimes answer UNIMPLEMENTED. */
  blobs(): RuntimeResult<readonly Blob[]>;
  /** Cancels running calls; later calls fail as CANCELLED. */
  close(): void;
}

/** Connects at the first call, and again after the runtime restarted. Error: what is wrong with the endpoint. */
export function openConnection({
  endpoint,
  timeoutMs = DEFAULT_TIMEOUT_MS,
  onFault,
}: ConnectionOptions): Result<Connection, string> {
  const path = socketPathOf(endpoint);
  if (!path.ok) return path;
  const socketPath = path.value;
  const channels = channelsTo(socketPath);
  const optionsOf = (ms: number) => ({ deadline: Date.now() + ms });
  const failed = (call: string, ms: number, error: ServiceError) => {
    const fault = faultOf({ call, socketPath, timeoutMs: ms }, error);
    onFault?.(fault);
    return err(fault);
  };

  function call<M extends CriMethod>(method: M, request: CriRequest<M>, extraMs = 0): RuntimeResult<CriAnswer<M>> {
    const { path, requestSerialize, responseDeserialize } = methodOf(method);
    const deadlineMs = timeoutMs + extraMs;
    const taken = channels.take();
    if (taken === undefined) return Promise.resolve(err(closedFault(method)));
    const { client, done } = taken;
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        path,
        requestSerialize as (value: CriRequest<M>) => Buffer,
        responseDeserialize as (bytes: Buffer) => CriAnswer<M>,
        request,
        new Metadata(),
        optionsOf(deadlineMs),
        (error, answer) => {
          done(error);
          resolve(error === null ? ok(answer as CriAnswer<M>) : failed(method, deadlineMs, error));
        },
      );
    });
  }

  function blobs(): RuntimeResult<readonly Blob[]> {
    const { requestSerialize, responseDeserialize } = contentList();
    const metadata = new Metadata();
    metadata.set("containerd-namespace", NAMESPACE);
    const taken = channels.take();
    if (taken === undefined) return Promise.resolve(err(closedFault("Content/List")));
    const { client, done } = taken;
    const found: Blob[] = [];
    const deadlineMs = Math.min(timeoutMs, LONGEST_BLOBS_MS);
    const parse = responseDeserialize as (bytes: Buffer) => { readonly info: readonly Blob[] };
    return new Promise((resolve) => {
      const end = (error: ServiceError | null, result: Result<readonly Blob[], RuntimeFault>): void => {
        done(error);
        resolve(result);
      };
      client
        .makeServerStreamRequest(CONTENT_LIST, requestSerialize, parse, {}, metadata, optionsOf(deadlineMs))
        .on("data", (part: { readonly info: readonly Blob[] }) => {
          for (const blob of part.info) found.push(blob);
        })
        .on("error", (error: ServiceError) => end(error, failed("Content/List", deadlineMs, error)))
        .on("end", () => end(null, ok(found)));
    });
  }

  return ok({ timeoutMs, call, blobs, close: channels.close });
}
const closedFault = (call: string): RuntimeFault => ({
  call,
  code: "CANCELLED",
  message: "the connection was closed before the call",
});

/**
 * Creates channels: a failed channel retries at growing intervals, so a call after a failure gets a new one. The old
 * one is closed after its last call, so that other calls still receive their own faults.
 */
function channelsTo(socketPath: string) {
  const open = () => ({
    client: new Client(`unix://${socketPath}`, credentials.createInsecure(), CHANNEL),
    active: 0,
    failed: false,
  });
  let current = open();
  let isClosed = false;
  const take = () => {
    if (isClosed) return undefined;
    if (current.failed) current = open();
    const taken = current;
    taken.active++;
    const done = (error: ServiceError | null): void => {
      taken.active--;
      if (error !== null && (error.code === status.UNAVAILABLE || isOwnDeadline(error))) taken.failed = true;
      if (taken.failed && taken.active === 0) taken.client.close();
    };
    return { client: taken.client, done };
  };
  const close = (): void => {
    isClosed = true;
    current.client.close();
  };
  return { take, close };
}

type Loaded = LoadedMethod<object, object>;
type Definition = Pick<MethodDefinition<unknown, unknown>, "path" | "requestSerialize" | "responseDeserialize">;
let loaded: ReadonlyMap<string, Loaded> | undefined;

/** Method path -> how it is written and read; the files are parsed at the first use. */
function methods(): ReadonlyMap<string, Loaded> {
  if (loaded !== undefined) return loaded;
  const files = ["runtime.proto", "content.proto"].map((file) => join(import.meta.dirname, file));
  const definitions = loadSync(files, { longs: String, enums: String, defaults: true });
  const entries = Object.entries(definitions).flatMap(([, service]) =>
    "format" in service
      ? []
      : Object.values(service).map((method): [string, Loaded] => [method.path, method as Loaded]),
  );
  loaded = new Map(entries);
  return loaded;
}
const SERVICES = ["/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"] as const;
function methodOf(method: CriMethod): Definition {
  const [runtime, image] = SERVICES.map((service) => methods().get(service + method));
  return (runtime ?? image) as Definition;
}
const contentList = (): Definition => methods().get(CONTENT_LIST) as Definition;
