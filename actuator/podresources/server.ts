import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { type MethodDefinition, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { err, ok, type Result } from "../../api/model/result.ts";
import { listenLastingly } from "../grpc/lasting-listener.ts";
import type { Listener } from "../grpc/listener.ts";
import { mendedSocket } from "../grpc/mended-socket.ts";
import { unaryMethod } from "../grpc/unary-method.ts";
import { type Refusal, type UnaryHandler, unaryServer } from "../grpc/unary-server.ts";
import { allocatableResources, alphaPodResources, podResources, podResourcesOf } from "./answers.ts";
import type { GetPodResourcesRequest } from "./messages.ts";
import { rateLimit } from "./rate-limit.ts";
import type { PodResourcesSource } from "./source.ts";

/** kubelet 1.36: podresources.Socket. */
const SOCKET = "kubelet.sock";
/** Exporters hold one or two each. */
const MOST_CONNECTIONS = 256;
const LIMITS = {
  // two names
  mostMessageBytes: 16 * 1024,
  mostStreams: 64,
  // an answer about a full node has a few
  sessionMegabytes: 64,
};

/** Of v1, and the one of v1alpha1. */
export type PodResourcesMethod = "List" | "GetAllocatableResources" | "Get" | "v1alpha1.List";
export interface PodResourcesServing {
  /** Where exporters look. */
  readonly directory: string;
  /** Of this moment; the error: why it is not known (yet). What comes again is not made into an answer again. */
  readonly source: () => Result<PodResourcesSource, string>;
  /** Told of each call, with gRPC's code by name. */
  readonly onCall?: (method: PodResourcesMethod, code: string) => void;
  /** Told, as a sentence, of a socket that was taken away while it was served. */
  readonly onFault?: (message: string) => void;
}
type Answer = (source: PodResourcesSource, request: object) => Result<object, Refusal>;

/**
 * Serves the podresources API, v1 and what was before it, on `kubelet.sock`. The error is a sentence: the socket cannot be had.
 * kubelet 1.36: ListenAndServePodResources.
 */
export function servePodResources(serving: PodResourcesServing): Promise<Result<Listener, string>> {
  const server = unaryServer({ handlers: handlers(serving), ...LIMITS });
  return listenLastingly({
    onFault: serving.onFault ?? (() => undefined),
    path: join(serving.directory, SOCKET),
    mostConnections: MOST_CONNECTIONS,
    onConnection: (socket) => server.accept(mendedSocket(socket)),
  });
}

function handlers({ source, onCall }: PodResourcesServing): Readonly<Record<string, UnaryHandler>> {
  const isAllowed = rateLimit(() => performance.now());
  const unary = (method: PodResourcesMethod, definition: Definition, answer: Answer) => {
    const responseSerialize = once(definition.responseSerialize);
    const handler = unaryMethod({ ...definition, responseSerialize }, (request) => {
      const answered = isAllowed() ? asked(source(), request, answer) : err(TOO_MANY);
      onCall?.(method, answered.ok ? "OK" : (status[answered.error.code] as string));
      return answered;
    });
    return [definition.path, handler] as const;
  };
  const v1 = definitions("podresources.proto", "v1.PodResourcesLister");
  const alpha = definitions("podresources-v1alpha1.proto", "v1alpha1.PodResourcesLister");
  const listed = once(podResources);
  const alphaListed = once(alphaPodResources);
  const allocatable = once(allocatableResources);
  return Object.fromEntries([
    unary("v1alpha1.List", alpha("List"), (now) => ok(alphaListed(now))),
    unary("List", v1("List"), (now) => ok(listed(now))),
    unary("GetAllocatableResources", v1("GetAllocatableResources"), (now) => ok(allocatable(now))),
    unary("Get", v1("Get"), (now, request) => {
      const found = podResourcesOf(now, request as GetPodResourcesRequest);
      return found.ok ? found : err({ code: status.UNKNOWN, message: found.error });
    }),
  ]);
}
/** kubelet 1.36: ErrorLimitExceeded. */
const TOO_MANY: Refusal = { code: status.RESOURCE_EXHAUSTED, message: "rejected by rate limit" };

const asked = (source: Result<PodResourcesSource, string>, request: object, answer: Answer): ReturnType<Answer> =>
  source.ok ? answer(source.value, request) : err({ code: status.UNAVAILABLE, message: source.error });

/** A source is of one moment, so its answers are made once, and once made into bytes. */
function once<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const made = new WeakMap<K, V>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

type Definition = MethodDefinition<object, object>;

function definitions(file: string, service: string): (method: string) => Definition {
  const loaded = loadSync(join(import.meta.dirname, file), { longs: String, defaults: true })[service];
  return (method) => (loaded as unknown as Readonly<Record<string, Definition>>)[method] as Definition;
}
