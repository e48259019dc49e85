import { isIPv6, Socket } from "node:net";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { containerPort, hostPort } from "../../../api/decide/probes/http-request.ts";
import type { ProbeHandler, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { ContainerPort, EnvVar } from "../../lifecycle/pod.ts";
import { systemNames } from "../dns/host-resolver.ts";

/** The container that is probed. */
export interface ProbeTarget {
  /** Empty: the pod has no address yet. */
  readonly podIP: string;
  readonly ports: readonly Pick<ContainerPort, "name" | "containerPort">[];
  /** The container's id in the runtime. */
  readonly containerId: string;
  readonly env: readonly EnvVar[];
  /** The kubelet version that is reimplemented: its error texts and its rules for ports. */
  readonly profile: Profile;
}

export interface SocketAddresses {
  readonly local: string;
  readonly remote: string;
}
/** Both ends of an open connection as Go prints them; a closed socket no longer knows them. */
export function addressesOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): SocketAddresses {
  return {
    local: hostPort(localAddress ?? "", localPort ?? 0),
    remote: hostPort(remoteAddress ?? "", remotePort ?? 0),
  };
}

/** Remembers its local address, which a closed socket loses; only error texts need it. */
class AddressedSocket extends Socket {
  #local: string | undefined;

  /** The local address, also after the connection broke. */
  get local(): string {
    return this.#local ?? "";
  }
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (error !== null) this.#local = addressesOf(this).local;
    super._destroy(error, callback);
  }
}

/** A resource that an attempt opened. */
interface Closable {
  destroy(): unknown;
}
/** Everything that an attempt opened, closed when the attempt ends. */
export class OpenConnections {
  /** One or two in most cases. */
  readonly #open: Closable[] = [];
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }
  /** Registers a resource; after the end of the attempt it is closed at once. */
  add<C extends Closable>(closable: C): C {
    if (this.#isOver) closable.destroy();
    else this.#open.push(closable);
    return closable;
  }
  close(closable: Closable): void {
    const at = this.#open.indexOf(closable);
    if (at >= 0) this.#open.splice(at, 1);
    closable.destroy();
  }
  closeAll(): void {
    this.#isOver = true;
    for (let one = this.#open.pop(); one !== undefined; one = this.#open.pop()) one.destroy();
  }
}

/**
 * Runs work for at most `timeoutMs`, and closes everything that it opened.
 * @param late the result at the timeout
 * @param broken the result of an unexpected error
 */
export function bounded<T>(
  timeoutMs: number,
  work: (opened: OpenConnections) => Promise<T>,
  late: () => T,
  broken: (error: unknown) => T,
): Promise<T> {
  const opened = new OpenConnections();
  return new Promise((resolve) => {
    const end = (result: T): void => {
      if (opened.isOver) return;
      clearTimeout(timer);
      opened.closeAll();
      resolve(result);
    };
    const timer = setTimeout(() => end(late()), timeoutMs);
    work(opened).then(end, (error: unknown) => end(broken(error)));
  });
}

/** The read buffer of all plain sockets: each takes its bytes out before the next one reads. */
const READ = Buffer.allocUnsafeSlow(64 * 1024);

/** The number of full reads of one socket in a row. */
const MAX_FULL_READS = 4;

/** A connection without TLS, for thousands per second: it has no read buffer of its own, and makes no system calls for addresses. */
export class PlainSocket extends AddressedSocket {
  #onText: (text: string) => void = ignored;
  #remote: string | undefined;
  #fullReads = 0;

  /** `address`: the one that it will connect to. */
  constructor(address: string, port: number) {
    super({ noDelay: true, onread: { buffer: READ, callback: (length) => this.#read(length) } });
    if (isIPv6(address)) {
      // IPv6 addresses have several text forms, and the system cannot be asked about a connection that was reset
      this.once("connect", () => {
        this.#remote = addressesOf(this).remote;
      });
    } else this.#remote = hostPort(address, port);
  }

  /** `listener` gets the received text, one character per byte; it replaces the former one. */
  onText(listener: (text: string) => void): void {
    this.#onText = listener;
  }
  /** Both addresses, also after the connection broke. */
  get ends(): SocketAddresses {
    return { local: this.local, remote: this.#remote ?? "" };
  }

  #read(length: number): boolean {
    this.#onText(READ.toString("latin1", 0, length));
    if (length < READ.length || ++this.#fullReads < MAX_FULL_READS) return true;
    // a server that sends this much continues after the others
    this.#fullReads = 0;
    setImmediate(() => this.resume());
    return false;
  }
}
const ignored = (): void => {};

/** Time after which the host's next address is tried, if the previous one has not answered. */
const NEXT_AFTER_MS = 300;
const LAST_PORT = 65_535;

interface DialFault {
  /** The error in Go's words. */
  readonly words: string;
  /** True: the connection was open, and broke before it was used. */
  readonly wasOpen: boolean;
}
type Dialed<S> = Result<S, DialFault>;
const fault = (words: string): Dialed<never> => err({ words, wasOpen: false });

/**
 * Connects to a host: an address, or a name with one or more addresses. The connection is closed with the attempt.
 * Error: Go's words, `dial tcp 10.0.0.1:80: connect: connection refused`. Go 1.26: net.Dialer.
 */
export const dial = (host: string, port: number, opened: OpenConnections): Promise<Dialed<AddressedSocket>> =>
  new Promise((resolve) => dialTo(host, port, opened, () => new AddressedSocket({ noDelay: true }), resolve));

/** As `dial`, with a socket from `make` (whose `host` is an address); `done` is called once, at once if possible. */
export function dialTo<S extends AddressedSocket>(
  host: string,
  port: number,
  opened: OpenConnections,
  make: (address: string, port: number) => S,
  done: (dialed: Dialed<S>) => void,
): void {
  if (port > LAST_PORT) {
    done(fault(`dial tcp: address ${port}: invalid port`));
    return;
  }
  const found = systemNames.addressesOf(host);
  const address = !(found instanceof Promise) && found.ok && found.value.length === 1 ? found.value[0] : undefined;
  if (address !== undefined) connect(address, port, opened, make, undefined, done);
  else void dialEach(host, port, opened, make).then(done);
}

async function dialEach<S extends AddressedSocket>(
  host: string,
  port: number,
  opened: OpenConnections,
  make: (address: string, port: number) => S,
): Promise<Dialed<S>> {
  const found = await systemNames.addressesOf(host);
  if (!found.ok) return fault(`dial tcp: ${found.error}`);
  let first: Dialed<S> | undefined;
  for (const [i, address] of found.value.entries()) {
    const patienceMs = i === found.value.length - 1 ? undefined : NEXT_AFTER_MS;
    const connected = await new Promise<Dialed<S>>((resolve) => {
      connect(address, port, opened, make, patienceMs, resolve);
    });
    if (connected.ok || connected.error.wasOpen) return connected;
    first ??= connected;
    if (opened.isOver) break;
  }
  return first ?? fault(`dial tcp: lookup ${host}: no such host`);
}

function connect<S extends AddressedSocket>(
  host: string,
  port: number,
  opened: OpenConnections,
  make: (address: string, port: number) => S,
  patienceMs: number | undefined,
  done: (dialed: Dialed<S>) => void,
): void {
  const socket = make(host, port);
  let isSettled = false;
  const remote = hostPort(host, port);
  const settle = (dialed: Dialed<S>): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(timer);
    if (!dialed.ok) opened.close(socket);
    done(dialed);
  };
  const failed = (words: string): void => settle(fault(`dial tcp ${remote}: ${words}`));
  const timer = patienceMs === undefined ? undefined : setTimeout(() => failed("i/o timeout"), patienceMs);
  // the listeners stay: until the caller adds its own, nothing else handles an error
  socket.on("error", (error: NodeJS.ErrnoException) => {
    // a refused connection fails while connecting: a reset means that the connection was open
    if (error.code !== "ECONNRESET") failed(netWords(error));
    else settle(err({ words: openWords({ ...error, syscall: "read" }, socket.local, remote), wasOpen: true }));
  });
  // the end of an attempt closes the socket without an error
  socket.on("close", () => failed("operation was canceled"));
  socket.on("connect", () => settle(ok(socket)));
  socket.connect({ host, port });
  opened.add(socket);
}

type Tcp = Extract<ProbeHandler, { tcp: unknown }>["tcp"];

/**
 * Checks that a connection opens. It is closed at once, in an orderly way (the server sees no reset). kubelet 1.36:
 * pkg/probe/tcp, DoTCPProbe.
 */
export async function tcpProbe(asked: Tcp, target: ProbeTarget, timeoutMs: number): Promise<ProbeOutcome> {
  const port = containerPort(asked.port, target.ports, target.profile.behaviour);
  if (!port.ok) return { error: port.error };
  const host = asked.host === "" ? target.podIP : asked.host;
  const open = async (opened: OpenConnections): Promise<ProbeOutcome> => {
    const socket = await dial(host, port.value, opened);
    if (!socket.ok && !socket.error.wasOpen) return { result: "failure", output: socket.error.words };
    return { result: "success", output: "" };
  };
  const where = (): string => (systemNames.isAsking(host) ? `: lookup ${host}` : ` ${hostPort(host, port.value)}`);
  return bounded(
    timeoutMs,
    open,
    () => ({ result: "failure", output: `dial tcp${where()}: i/o timeout` }),
    (error) => ({ error: (error as Error).message }),
  );
}

/** The error of a stream that its server reset, in Go's words. Go 1.26: http2.StreamError. */
export const streamFault = (code: number | undefined): string =>
  `stream error: stream ID 1; ${nameOf(code ?? 0)}; received from peer`;

const nameOf = (code: number): string => ERRORS[code] ?? `unknown error code 0x${code.toString(16)}`;

/** Names of HTTP/2 error codes, by number. RFC 9113, 7. */
export const ERRORS: readonly string[] = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];

/** A system error as Go's net package words it: `connect: connection refused`; other errors keep their text. */
function netWords(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const words = code === undefined ? undefined : WORDS[code];
  return words === undefined ? message : `${syscall ?? "connect"}: ${words}`;
}
/** Describes an error of an open connection: `read tcp 127.0.0.1:4000->127.0.0.1:80: read: connection reset by peer` */
function openWords(error: unknown, local: string, remote: string): string {
  const { syscall } = error as NodeJS.ErrnoException;
  const verb = syscall === "write" ? "write" : "read";
  return `${verb} tcp ${local}->${remote}: ${netWords(error)}`;
}
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by peer",
  ECONNABORTED: "software caused connection abort",
  EHOSTUNREACH: "no route to host",
  EHOSTDOWN: "host is down",
  ENETUNREACH: "network is unreachable",
  ENETDOWN: "network is down",
  ETIMEDOUT: "connection timed out",
  EADDRNOTAVAIL: "cannot assign requested address",
  EAFNOSUPPORT: "address family not supported by protocol",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EINVAL: "invalid argument",
  EMFILE: "too many open files",
  ENFILE: "too many open files in system",
  ENOBUFS: "no buffer space available",
  EPIPE: "broken pipe",
};

/** Describes a connection's fault in Go's words; most are TLS faults. `begun`: the server's first five bytes. */
export function tlsWords(error: Error, local: string, remote: string, begun = ""): string {
  const { code = "" } = error as NodeJS.ErrnoException;
  const alert = /_ALERT_(.+)$/.exec(code)?.[1];
  if (alert !== undefined) return `remote error: tls: ${ALERTS[alert] ?? alert.toLowerCase().replaceAll("_", " ")}`;
  if (NO_TLS.has(code)) {
    return begun === "HTTP/"
      ? "http: server gave HTTP response to HTTPS client"
      : "tls: first record does not look like a TLS handshake";
  }
  if (code.startsWith("ERR_SSL_")) return `tls: ${code.slice("ERR_SSL_".length).toLowerCase().replaceAll("_", " ")}`;
  // Node's text for a peer that closes the connection before the handshake is complete
  if (error.message.startsWith("Client network socket disconnected")) return "EOF";
  return openWords(error, local, remote);
}

const NO_TLS: ReadonlySet<string> = new Set(["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"]);

/** OpenSSL's alert names -> Go's. Go 1.26: crypto/tls, alertText. */
const ALERTS: Readonly<Record<string, string>> = {
  BAD_RECORD_MAC: "bad record MAC",
  PROTOCOL_VERSION: "protocol version not supported",
  UNKNOWN_CA: "unknown certificate authority",
  DECODE_ERROR: "error decoding message",
  DECRYPT_ERROR: "error decrypting message",
  CERTIFICATE_REVOKED: "revoked certificate",
  CERTIFICATE_EXPIRED: "expired certificate",
  CERTIFICATE_UNKNOWN: "unknown certificate",
  INSUFFICIENT_SECURITY: "insufficient security level",
  USER_CANCELLED: "user canceled",
};
