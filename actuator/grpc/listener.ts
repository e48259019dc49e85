import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, rmSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { type Disk, makeFolder } from "../../api/base/make-folder.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { socketIdentity, socketPathFault } from "../core/addresses.ts";
import { CoalescedTimer, WatchedDirectory } from "./watched-directory.ts";

interface ConnectionsOptions {
  readonly most: number;
  /** Faults of a connection are reported at most this often, ms. */
  readonly reportMs?: number;
  /** A sentence. */
  readonly onFull: (message: string) => void;
}
interface Open {
  readonly isBusy: () => boolean;
  heardAt: number;
}

const REPORT_MS = 60_000;

/** The open connections: if there are too many, the idle one that was silent the longest is closed. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Map<Socket, Open>();
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** `isBusy`: whether the socket has a running call. False: all others are busy, and the socket was closed. */
  admit(socket: Socket, isBusy: () => boolean): boolean {
    const isAdmitted = this.#open.size < this.#options.most || this.#dropSilent();
    if (!isAdmitted) {
      socket.destroy();
      return false;
    }
    const open = { isBusy, heardAt: performance.now() };
    this.#open.set(socket, open);
    socket.on("data", () => (open.heardAt = performance.now())).on("close", () => this.#open.delete(socket));
    return true;
  }

  #dropSilent(): boolean {
    const idle = [...this.#open].filter(([, { isBusy }]) => !isBusy());
    const [silent] = idle.sort(([, a], [, b]) => a.heardAt - b.heardAt);
    this.#report(
      silent === undefined ? "all wait for an answer, and a new one was closed" : "the most silent was closed",
    );
    if (silent === undefined) return false;
    this.#open.delete(silent[0]);
    silent[0].destroy();
    return true;
  }
  #report(what: string): void {
    const now = performance.now();
    if (now - this.#reportedAt < (this.#options.reportMs ?? REPORT_MS)) return;
    this.#reportedAt = now;
    this.#options.onFull(`${this.#options.most} connections are open, as many as may be: ${what}`);
  }
}

interface RebindingSocket extends Listener {
  /** Why the socket is lost now; undefined: it is not, or rebinding has not been tried yet. */
  fault(): string | undefined;
}
export interface RebindingListener extends SocketOptions {
  /**
   * Called with a sentence when the socket was lost or came back, and once for each reason why it cannot be bound;
   * that one has `stands` true.
   */
  readonly onFault: (message: string, stands: boolean) => void;
  /** The interval between checks without an event, in ms. */
  readonly checkMs?: number;
  /** The delay from the loss of the socket until it is bound again, in ms. */
  readonly firstDelayMs?: number;
}

const CHECK_MS = 10_000;
/** The time to wait for related events: one rename causes several. */
const SETTLE_MS = 50;
/** A starting kubelet removes the socket and binds its own: this daemon must not bind it first. */
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;

/**
 * Listens as `listenOn`, and binds a removed socket again, since clients wait for its creation. If it is removed again
 * and again, the delays grow; another's socket in its place is left alone.
 */
export async function listenRebinding(options: RebindingListener): Promise<Result<RebindingSocket, string>> {
  const listening = await listenOn(options);
  if (!listening.ok) return listening;
  const listener = new RebindingSocketListener(options, listening.value);
  return { ok: true, value: { path: options.path, close: () => listener.close(), fault: () => listener.fault } };
}

class RebindingSocketListener {
  readonly #options: RebindingListener;
  readonly #directory: WatchedDirectory;
  readonly #checking = new CoalescedTimer(() => this.#check());
  #listener: BoundListener;
  #boundAt = performance.now();
  #delayMs: number;
  /** Set while the socket is lost. */
  #binding: NodeJS.Timeout | undefined;
  #reportedFault = "";
  #isClosed = false;

  constructor(options: RebindingListener, listener: BoundListener) {
    this.#options = options;
    this.#listener = listener;
    this.#delayMs = this.#firstDelayMs;
    const name = basename(options.path);
    this.#directory = new WatchedDirectory(dirname(options.path), (changed) => {
      if (changed === null || changed === name) this.#checking.in(SETTLE_MS);
    });
    this.#check();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#checking.stop();
    clearTimeout(this.#binding);
    this.#directory.close();
    return this.#listener.close();
  }

  get fault(): string | undefined {
    return this.#reportedFault === "" ? undefined : this.#reportedFault;
  }
  get #firstDelayMs(): number {
    return this.#options.firstDelayMs ?? FIRST_DELAY_MS;
  }
  #check(): void {
    this.#checking.in(this.#options.checkMs ?? CHECK_MS);
    this.#directory.renew();
    if (this.#binding !== undefined || this.#listener.stands()) return;
    if (performance.now() - this.#boundAt > LONGEST_DELAY_MS) this.#delayMs = this.#firstDelayMs;
    this.#bindLater();
  }
  #bindLater(): void {
    this.#binding = setTimeout(() => void this.#bind(), this.#delayMs).unref();
    this.#delayMs = Math.min(this.#delayMs * 2, LONGEST_DELAY_MS);
  }

  async #bind(): Promise<void> {
    const lost = this.#listener;
    const next = lost.stands() ? undefined : await listenOn(this.#options);
    if (this.#isClosed) {
      if (next?.ok) await next.value.close();
      return;
    }
    if (next?.ok === false) {
      this.#reportFault(`the socket was taken away, and cannot be bound again: ${next.error}`);
      this.#bindLater();
      return;
    }
    this.#binding = undefined;
    if (next !== undefined) {
      this.#listener = next.value;
      this.#boundAt = performance.now();
      void lost.close();
      this.#options.onFault(`${this.#options.path} was taken away while it was served: it is bound again`, false);
    }
    this.#reportedFault = "";
    this.#checking.in(0);
  }

  #reportFault(message: string): void {
    if (message !== this.#reportedFault) this.#options.onFault(message, true);
    this.#reportedFault = message;
  }
}

const DISK: Disk = { exists: existsSync, parentOf: dirname, make: (path) => mkdirSync(path, { mode: 0o750 }) };

interface SocketOptions {
  readonly path: string;
  /** The maximum number of connections; further ones are closed at once. */
  readonly maxConnections: number;
  /** Clients may half-close their connection; its errors can be ignored. */
  readonly onConnection: (socket: Socket) => void;
}
export interface Listener {
  readonly path: string;
  /** Also ends the connections. The file is removed at once, unless another process has put its own there. */
  close(): Promise<void>;
}
interface BoundListener extends Listener {
  /** Whether the listener's socket is still the one at its path. */
  stands(): boolean;
}

/**
 * Listens on a unix socket with owner-only access, and creates its directory if needed. A socket left by an ended
 * process is replaced. The error is a sentence: a process answers there, the path is no socket, or the system's
 * message.
 */
async function listenOn({ path, maxConnections, onConnection }: SocketOptions): Promise<Result<BoundListener, string>> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket.on("error", () => undefined).on("close", () => open.delete(socket)));
    onConnection(socket);
  });
  server.maxConnections = maxConnections;
  const found = await staleSocketAt(path);
  if (!found.ok) return found;
  try {
    await bind(server, path, found.value.stale);
  } catch (error) {
    server.close();
    return err(`${path}: ${(error as Error).message}`);
  }
  const own = socketIdentity(path);
  const stands = (): boolean => own !== undefined && socketIdentity(path) === own;
  const close = (): Promise<void> =>
    new Promise((done) => {
      server.close(() => done());
      for (const socket of open) socket.destroy();
      if (stands()) rmSync(path, { force: true });
    });
  return ok({ path, close, stands });
}

/**
 * Binds under another name first, since a socket accepts connections as soon as it is visible, and Node removes the
 * bound path on close even if another process uses it by then. The temporary name is unique, and short, since the
 * kernel limits its bytes too.
 */
async function bind(server: Server, path: string, stale: string | undefined): Promise<void> {
  const hidden = join(dirname(path), `.${randomBytes(4).toString("hex")}`);
  await new Promise<void>((done, failed) => {
    // this handler stays: a failed accept must not end the process
    server.on("error", failed).listen(hidden, done);
  });
  chmodSync(hidden, 0o600);
  if (stale !== undefined && socketIdentity(path) === stale) unlinkSync(path);
  linkSync(hidden, path);
  unlinkSync(hidden);
}

/**
 * Checks that a socket can be created at a path, and creates its directory; `stale`: the identity of a socket there
 * without a listener. The error is a sentence, and nothing was removed.
 */
export async function staleSocketAt(path: string): Promise<Result<{ readonly stale: string | undefined }, string>> {
  const fault = socketPathFault(path);
  if (fault !== undefined) return err(fault);
  try {
    makeFolder(dirname(path), DISK);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return ok({ stale: undefined });
    if (!stat.isSocket()) return err(`${path} is no socket and is left alone: remove it, or choose another directory`);
  } catch (error) {
    return err(`${path}: ${(error as Error).message}`);
  }
  const stale = socketIdentity(path);
  const code = await connectionFault(path);
  if (code === "ECONNREFUSED" || code === "ENOENT") return ok({ stale });
  // EAGAIN: the backlog of waiting connections is full
  return code === undefined || code === "EAGAIN"
    ? err(`${path}: another process answers there, such as a kubelet: end it, or choose another directory`)
    : err(`${path} cannot be checked: ${code}`);
}

/** The errno of a connection that fails. */
const connectionFault = (path: string): Promise<string | undefined> =>
  new Promise((done) => {
    const socket = connect(path, () => {
      socket.destroy();
      done(undefined);
    });
    socket.once("error", (e: NodeJS.ErrnoException) => done(e.code));
  });
