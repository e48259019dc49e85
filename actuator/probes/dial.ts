import { hostPort } from "../../api/decide/probes/http-request.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Opened } from "./bounded.ts";
import { systemNames } from "./names.ts";
import { netWords, openWords } from "./net-words.ts";
import { TellingSocket } from "./socket-ends.ts";

/** Of an address that says nothing, while the host has another one. */
const NEXT_AFTER_MS = 300;
const LAST_PORT = 65_535;

export interface DialFault {
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
export const dial = (host: string, port: number, opened: Opened): Promise<Dialed<TellingSocket>> =>
  new Promise((resolve) => dialTo(host, port, opened, () => new TellingSocket({ noDelay: true }), resolve));

/** The same, over a socket of one's own making (`host` there is an address); `done` is called once, at once where it can. */
export function dialTo<S extends TellingSocket>(
  host: string,
  port: number,
  opened: Opened,
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

async function dialEach<S extends TellingSocket>(
  host: string,
  port: number,
  opened: Opened,
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

function connect<S extends TellingSocket>(
  host: string,
  port: number,
  opened: Opened,
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
