import { isIPv6, Socket } from "node:net";
import { containerPort, hostPort } from "../../../api/decide/probes/http-request.ts";
import type { ProbeHandler, ProbeOutcome } from "../../../api/model/probe.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { ContainerPort, EnvVar } from "../../lifecycle/pod.ts";
import { systemNames } from "../dns/host-resolver.ts";

/** The container that is asked. */
export interface ProbeTarget {
  /** Empty: the pod has none yet. */
  readonly podIP: string;
  readonly ports: readonly Pick<ContainerPort, "name" | "containerPort">[];
  /** As the runtime knows it. */
  readonly containerId: string;
  readonly env: readonly EnvVar[];
  /** The kubelet that is played: its words, and its rules for ports. */
  readonly profile: Profile;
}

export interface SocketAddresses {
  readonly local: string;
  readonly remote: string;
}
/** Both ends of an open connection as Go prints them; a closed one has forgotten them. */
export function addressesOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): SocketAddresses {
  return {
    local: hostPort(localAddress ?? "", localPort ?? 0),
    remote: hostPort(remoteAddress ?? "", remotePort ?? 0),
  };
}

/** A socket that is closed has forgotten its own address, which is told in errors only. */
class AddressedSocket extends Socket {
  #local: string | undefined;

  /** Address of a connection that broke. */
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
  /** Rarely more than one or two. */
  readonly #open: Closable[] = [];
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }
  /** After the end it is closed at once. */
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
 * Work that ends after so many milliseconds at the latest, whatever it waits for, and leaves nothing open.
 * @param late what came of it when its time is over
 * @param broken what comes of an error that nobody thought of
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

/** All read into it, one after the other: what came is taken out before the next reads. */
const READ = Buffer.allocUnsafeSlow(64 * 1024);

/** In one turn. */
const MAX_FULL_READS = 4;

/** A connection without TLS, made for thousands a second: it takes no memory for what it reads, and asks for no addresses. */
export class PlainSocket extends AddressedSocket {
  #onText: (text: string) => void = ignored;
  #remote: string | undefined;
  #fullReads = 0;

  /** To be connected with this address. */
  constructor(address: string, port: number) {
    super({ noDelay: true, onread: { buffer: READ, callback: (length) => this.#read(length) } });
    if (isIPv6(address)) {
      // they are written in more than one way, and the system is not asked about a connection that was reset
      this.once("connect", () => {
        this.#remote = addressesOf(this).remote;
      });
    } else this.#remote = hostPort(address, port);
  }

  /** `listener` gets the text that came, one character for each byte; there is one at a time. */
  onText(listener: (text: string) => void): void {
    this.#onText = listener;
  }
  /** Address of a connection that broke. */
  get ends(): SocketAddresses {
    return { local: this.local, remote: this.#remote ?? "" };
  }

  #read(length: number): boolean {
    this.#onText(READ.toString("latin1", 0, length));
    if (length < READ.length || ++this.#fullReads < MAX_FULL_READS) return true;
    // whoever sends this much has its turn again behind the others
    this.#fullReads = 0;
    setImmediate(() => this.resume());
    return false;
  }
}
const ignored = (): void => {};

/** Time after which the host's next address is tried, if the one before says nothing. */
const NEXT_AFTER_MS = 300;
const LAST_PORT = 65_535;

interface DialFault {
  /** Go's. */
  readonly words: string;
  /** The connection was open, and broke before anybody looked. */
  readonly wasOpen: boolean;
}
type Dialed<S> = Result<S, DialFault>;
const fault = (words: string): Dialed<never> => err({ words, wasOpen: false });

/**
 * A connection to a host: an address, or a name with one or more. It goes with the attempt.
 * Error: Go's words, `dial tcp 10.0.0.1:80: connect: connection refused`. Go 1.26: net.Dialer.
 */
export const dial = (host: string, port: number, opened: OpenConnections): Promise<Dialed<AddressedSocket>> =>
  new Promise((resolve) => dialTo(host, port, opened, () => new AddressedSocket({ noDelay: true }), resolve));

/** The same, over a socket of one's own making (`host` there is an address); `done` is called once, at once where it can. */
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
  // they stay: what goes wrong between here and who takes it is heard by nobody else
  socket.on("error", (error: NodeJS.ErrnoException) => {
    // who is not let in is refused: a reset means that the other side had been there
    if (error.code !== "ECONNRESET") failed(netWords(error));
    else settle(err({ words: openWords({ ...error, syscall: "read" }, socket.local, remote), wasOpen: true }));
  });
  // the end of an attempt closes it without a word
  socket.on("close", () => failed("operation was canceled"));
  socket.on("connect", () => settle(ok(socket)));
  socket.connect({ host, port });
  opened.add(socket);
}

type Tcp = Extract<ProbeHandler, { tcp: unknown }>["tcp"];

/**
 * Checks that a connection opens. It is closed at once, in an orderly way (no server sees a reset). kubelet 1.36:
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

/** A stream that its server reset, in Go's words. Go 1.26: http2.StreamError. */
export const streamFault = (code: number | undefined): string =>
  `stream error: stream ID 1; ${nameOf(code ?? 0)}; received from peer`;

const nameOf = (code: number): string => ERRORS[code] ?? `unknown error code 0x${code.toString(16)}`;

/** By their codes. RFC 9113, 7. */
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

/** An error of the system as Go's net package words it: `connect: connection refused`; a text that is none stays. */
function netWords(error: unknown): string {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const words = code === undefined ? undefined : WORDS[code];
  return words === undefined ? message : `${syscall ?? "connect"}: ${words}`;
}
/** Describes an error of an open connection. `read tcp 127.0.0.1:4000->127.0.0.1:80: read: connection reset by peer` */
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

/** Describes a connection's fault in Go's words; most of them are about TLS. `begun`: the server's first five bytes. */
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
  // node's own words for a peer that ends before the handshake does
  if (error.message.startsWith("Client network socket disconnected")) return "EOF";
  return openWords(error, local, remote);
}

const NO_TLS: ReadonlySet<string> = new Set(["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"]);

/** OpenSSL's names, and Go's. Go 1.26: crypto/tls, alertText. */
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
