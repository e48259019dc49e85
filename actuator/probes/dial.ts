import { Socket } from "node:net";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Opened } from "./bounded.ts";
import { addressesOf } from "./names.ts";
import { netWords } from "./net-words.ts";

/** Of an address that says nothing, while the host has another one. */
const NEXT_AFTER_MS = 300;
const LAST_PORT = 65_535;

type Dialed<S> = Result<S, string>;

/**
 * A connection to a host: an address, or a name with one or more. It goes with the attempt.
 * Error: Go's words, `dial tcp 10.0.0.1:80: connect: connection refused`. Go 1.26: net.Dialer.
 */
export const dial = (host: string, port: number, opened: Opened): Promise<Dialed<Socket>> =>
  new Promise((resolve) => dialTo(host, port, opened, () => new Socket({ noDelay: true }), resolve));

/** The same, over a socket of one's own making (`host` there is an address); `done` is called once, at once where it can. */
export function dialTo<S extends Socket>(
  host: string,
  port: number,
  opened: Opened,
  make: (address: string, port: number) => S,
  done: (dialed: Dialed<S>) => void,
): void {
  if (port > LAST_PORT) {
    done(err(`dial tcp: address ${port}: invalid port`));
    return;
  }
  const found = addressesOf(host);
  const address = !(found instanceof Promise) && found.ok && found.value.length === 1 ? found.value[0] : undefined;
  if (address !== undefined) connect(address, port, opened, make, undefined, done);
  else void dialEach(host, port, opened, make).then(done);
}

async function dialEach<S extends Socket>(
  host: string,
  port: number,
  opened: Opened,
  make: (address: string, port: number) => S,
): Promise<Dialed<S>> {
  const found = await addressesOf(host);
  if (!found.ok) return err(`dial tcp: ${found.error}`);
  let first: Dialed<S> | undefined;
  for (const [i, address] of found.value.entries()) {
    const patienceMs = i === found.value.length - 1 ? undefined : NEXT_AFTER_MS;
    const connected = await new Promise<Dialed<S>>((resolve) => {
      connect(address, port, opened, make, patienceMs, resolve);
    });
    if (connected.ok) return connected;
    first ??= connected;
    if (opened.isOver) break;
  }
  return first ?? err(`dial tcp: lookup ${host}: no such host`);
}

function connect<S extends Socket>(
  host: string,
  port: number,
  opened: Opened,
  make: (address: string, port: number) => S,
  patienceMs: number | undefined,
  done: (dialed: Dialed<S>) => void,
): void {
  const socket = make(host, port);
  let isSettled = false;
  const failed = (words: string): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(timer);
    opened.close(socket);
    done(err(`dial tcp ${hostPort(host, port)}: ${words}`));
  };
  const timer = patienceMs === undefined ? undefined : setTimeout(() => failed("i/o timeout"), patienceMs);
  // they stay: what goes wrong between here and who takes it is heard by nobody else
  socket.on("error", (error) => failed(netWords(error)));
  // the end of an attempt closes it without a word
  socket.on("close", () => failed("operation was canceled"));
  socket.on("connect", () => {
    isSettled = true;
    clearTimeout(timer);
    done(ok(socket));
  });
  socket.connect({ host, port });
  opened.add(socket);
}
