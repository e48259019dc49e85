import { connect as netConnect, type Socket } from "node:net";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Opened } from "./bounded.ts";
import { addressesOf } from "./names.ts";
import { netWords } from "./net-words.ts";

/** Of an address that says nothing, while the host has another one. */
const NEXT_AFTER_MS = 300;

/**
 * A connection to a host: an address, or a name with one or more. It goes with the attempt.
 * Error: Go's words, `dial tcp 10.0.0.1:80: connect: connection refused`. Go 1.26: net.Dialer.
 */
export async function dial(host: string, port: number, opened: Opened): Promise<Result<Socket, string>> {
  const asked = addressesOf(host);
  const found = asked instanceof Promise ? await asked : asked;
  if (!found.ok) return err(`dial tcp: ${found.error}`);
  let first: Result<Socket, string> | undefined;
  for (const [i, address] of found.value.entries()) {
    const isLast = i === found.value.length - 1;
    const connected = await connect(address, port, opened, isLast ? undefined : NEXT_AFTER_MS);
    if (connected.ok) return connected;
    first ??= connected;
    if (opened.isOver) break;
  }
  return first ?? err(`dial tcp: lookup ${host}: no such host`);
}

function connect(
  host: string,
  port: number,
  opened: Opened,
  patienceMs: number | undefined,
): Promise<Result<Socket, string>> {
  return new Promise((resolve) => {
    const socket = opened.add(netConnect({ host, port, noDelay: true }));
    const failed = (words: string): void => {
      clearTimeout(timer);
      opened.close(socket);
      resolve(err(`dial tcp ${hostPort(host, port)}: ${words}`));
    };
    const onError = (error: Error): void => failed(netWords(error));
    const timer = patienceMs === undefined ? undefined : setTimeout(() => failed("i/o timeout"), patienceMs);
    socket.once("error", onError);
    // the end of an attempt closes it without a word
    socket.once("close", () => failed("operation was canceled"));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners();
      // what goes wrong from now on is heard by who took it, and by nobody between the two
      socket.on("error", ignored);
      resolve(ok(socket));
    });
  });
}
const ignored = (): void => {};
