import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, rmSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { type Disk, makeFolder } from "../../api/model/make-folder.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { socketIdentity, socketPathFault } from "../core/socket-path.ts";

const DISK: Disk = { exists: existsSync, parentOf: dirname, make: (path) => mkdirSync(path, { mode: 0o750 }) };

export interface Listening {
  readonly path: string;
  /** At a time; more are closed at once. */
  readonly mostConnections: number;
  /** Each may be half closed by its client; an error of it needs no hearing. */
  readonly onConnection: (socket: Socket) => void;
}
export interface Listener {
  readonly path: string;
  /** Ends the connections too. The file goes at once, unless another process has put its own there. */
  close(): Promise<void>;
}
export interface BoundListener extends Listener {
  /** True: its socket is still the one at its path. */
  stands(): boolean;
}

/**
 * Listens on a unix socket, its owner's only, in a directory that is made if it is not there. What a process that is gone
 * left is replaced. The error is a sentence: somebody answers there, it is no socket, or what the system says.
 */
export async function listenOn({
  path,
  mostConnections,
  onConnection,
}: Listening): Promise<Result<BoundListener, string>> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket.on("error", () => undefined).on("close", () => open.delete(socket)));
    onConnection(socket);
  });
  server.maxConnections = mostConnections;
  const vacancy = await vacancyAt(path);
  if (!vacancy.ok) return vacancy;
  try {
    await bind(server, path, vacancy.value.stale);
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
 * Under another name first: whoever sees the socket can connect to it, and Node removes the path that it bound when it
 * closes, whoever has that path by then. The name is nobody else's, and short, since the kernel counts its bytes too.
 */
async function bind(server: Server, path: string, stale: string | undefined): Promise<void> {
  const hidden = join(dirname(path), `.${randomBytes(4).toString("hex")}`);
  await new Promise<void>((done, failed) => {
    // it stays: a connection that cannot be taken ends nobody's work
    server.on("error", failed).listen(hidden, done);
  });
  chmodSync(hidden, 0o600);
  if (stale !== undefined && socketIdentity(path) === stale) unlinkSync(path);
  linkSync(hidden, path);
  unlinkSync(hidden);
}

/**
 * Checks that a socket can be created at a path, and creates its directory if it is missing; `stale`: the identity of a socket
 * there that nobody listens on. The error is a sentence, and nothing was removed.
 */
export async function vacancyAt(path: string): Promise<Result<{ readonly stale: string | undefined }, string>> {
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
  // EAGAIN: so many wait that no more are taken
  return code === undefined || code === "EAGAIN"
    ? err(`${path}: another process answers there, such as a kubelet: end it, or choose another directory`)
    : err(`${path} cannot be looked at: ${code}`);
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
