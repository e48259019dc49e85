import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { err, map, ok, type Result } from "../../api/model/result.ts";
import { Connections } from "../grpc/connections.ts";
import { listenLastingly } from "../grpc/lasting-listener.ts";
import { mendedSocket } from "../grpc/mended-socket.ts";
import { unaryMethod } from "../grpc/unary-method.ts";
import { type AcceptedConnection, type Refusal, unaryServer } from "../grpc/unary-server.ts";
import type { PluginFault } from "./fault.ts";
import type { RegisterRequest } from "./messages.ts";
import { endpointPath, resourceFault, SOCKET_NAME, versionFault } from "./names.ts";
import { methodAt } from "./protocol.ts";
import { clearSocketDir } from "./socket-dir.ts";

const REGISTER = "/v1beta1.Registration/Register";
/** Connections at a time; a plugin needs one, for as long as it registers. */
const MOST_CONNECTIONS = 128;
/** Without a byte a connection ends. */
const IDLE_MS = 60_000;
/** A name, a socket's name and a version are a few hundred. */
const MOST_REQUEST_BYTES = 16 * 1024;

export interface RegistrationOptions {
  readonly dir: string;
  /** Answers when the plugin was dialed; the error is what the plugin hears. */
  readonly register: (resource: string, socketPath: string) => Promise<Result<unknown, PluginFault>>;
  /** Told of each request that is refused, of connections that are no gRPC, and of a kubelet.sock that was taken away. */
  readonly onFault: (fault: PluginFault) => void;
}
export interface RegistrationServer {
  readonly path: string;
  /** Sockets that were removed at the start. */
  readonly removed: readonly string[];
  /** What is wrong for as long as it is said here: kubelet.sock is lost. */
  standing(): readonly PluginFault[];
  close(): void;
}

/**
 * Clears the directory and serves v1beta1.Registration on a new kubelet.sock, which is what tells plugins to come back.
 * The error says why not, and then nothing of others was touched. kubelet 1.36: server.Start, server.Register.
 */
export async function openRegistration(options: RegistrationOptions): Promise<Result<RegistrationServer, string>> {
  const { dir } = options;
  const path = join(dir, SOCKET_NAME);
  const cleared = await clearSocketDir(dir);
  if (!cleared.ok) return cleared;

  const server = unaryServer({
    handlers: { [REGISTER]: unaryMethod(methodAt(REGISTER), registrar(options)) },
    mostMessageBytes: MOST_REQUEST_BYTES,
    mostStreams: 8,
    sessionMegabytes: 1,
  });
  const lost = (message: string): PluginFault => ({ ...refusal("", path, message), code: "SOCKET_LOST" });
  const connections = new Connections({
    most: MOST_CONNECTIONS,
    onFull: (message) => options.onFault({ ...refusal("", path, message), code: "TOO_MANY_CONNECTIONS" }),
  });
  const listening = await listenLastingly({
    path,
    // one that is to go is counted until it has gone
    mostConnections: 2 * MOST_CONNECTIONS,
    onFault: (message, stands) => options.onFault({ ...lost(message), ...(stands ? { stands } : {}) }),
    onConnection: (socket) => {
      let accepted: AcceptedConnection | undefined;
      if (!connections.admit(socket, () => accepted?.isBusy() === true)) return;
      socket.setTimeout(IDLE_MS, () => socket.destroy());
      accepted = server.accept(mendedSocket(socket, (reason) => options.onFault(refusal("", path, reason))));
    },
  });
  return map(listening, ({ close, fault }) => ({
    path,
    removed: cleared.value.removed,
    standing: () => [fault()].flatMap((message) => (message === undefined ? [] : { ...lost(message), stands: true })),
    close: () => void close(),
  }));
}

/** What a stranger sends is told cut short. */
const LONGEST_TOLD = 256;
const refusal = (resource: string, endpoint: string, message: string): PluginFault => ({
  resource: resource.slice(0, LONGEST_TOLD),
  endpoint: endpoint.slice(0, LONGEST_TOLD),
  call: "Register",
  code: "REFUSED",
  message,
});

/** Go's servers answer every plain error as UNKNOWN. */
const registrar =
  ({ dir, register, onFault }: RegistrationOptions) =>
  async (request: object): Promise<Result<object, Refusal>> => {
    const { version, resourceName, endpoint } = request as RegisterRequest;
    const refused = (message: string) => err({ code: status.UNKNOWN, message });
    const path = endpointPath(dir, endpoint);
    const wrong = versionFault(version) ?? resourceFault(resourceName) ?? (path.ok ? undefined : path.error);
    if (wrong !== undefined || !path.ok) {
      onFault(refusal(resourceName, endpoint, wrong ?? ""));
      return refused(wrong ?? "");
    }
    const done = await register(resourceName, path.value);
    if (done.ok) return ok({});
    onFault({ ...done.error, call: "Register" });
    return refused(done.error.message);
  };
