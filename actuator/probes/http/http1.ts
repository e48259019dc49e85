import type { Socket } from "node:net";
import { HttpAnswer, type HttpHead } from "../../../api/decide/probes/http-answer.ts";
import { addressesOf, type Opened, type PlainSocket, type SocketAddresses } from "../net/dial.ts";
import { tlsWords } from "../net/messages.ts";

/** The outcome of one request over one connection. */
export interface Exchanged {
  /** Undefined: there was none, and the error says why. */
  readonly head: HttpHead | undefined;
  /** A text of bytes: as much as was wanted. */
  readonly body: string;
  /** Go's words; with a head, of the body. */
  readonly error: string | undefined;
}
/** The stage that is waited for: the words for an attempt's end depend on it. */
export type Stage = "answer" | "handshake" | "retry";
export interface Listening {
  /** The number of bytes of the body that are asked for, by the head. */
  readonly wanted: (head: HttpHead) => number;
  /** Over TLS alone. */
  readonly onStage: (stage: Stage) => void;
}

/**
 * One request of HTTP/1.1 over a connection of its own, closed behind it. Node's client needs thrice the time for a new
 * connection each, and has other words for an answer that is none.
 */
export function exchangeHttp1(
  socket: Socket,
  request: string,
  listening: Listening,
  opened: Opened,
): Promise<Exchanged> {
  const ends = addressesOf(socket);
  return new Promise((resolve) => {
    const push = asked(socket, request, listening, opened, () => ends, resolve);
    socket.on("data", (bytes: Buffer) => push(bytes.toString("latin1")));
  });
}

/** The same without TLS; `done` is called once. */
export function exchangePlain(
  socket: PlainSocket,
  request: string,
  listening: Listening,
  opened: Opened,
  done: (exchanged: Exchanged) => void,
): void {
  socket.onText(asked(socket, request, listening, opened, () => socket.ends, done));
}

/** Asks, and waits for the end; what it returns takes what came of the answer. */
function asked(
  socket: Socket,
  request: string,
  { wanted }: Listening,
  opened: Opened,
  endsNow: () => SocketAddresses,
  done: (exchanged: Exchanged) => void,
): (text: string) => void {
  const answer = new HttpAnswer(wanted);
  const finish = (): void => {
    opened.close(socket);
    done({ head: answer.head, body: answer.body, error: answer.error });
  };
  const end = (error?: Error): void => {
    if (answer.isDone) return;
    const { local, remote } = endsNow();
    answer.end(error === undefined ? undefined : tlsWords(error, local, remote));
    finish();
  };
  socket.on("error", end);
  socket.on("end", () => end());
  socket.on("close", () => end());
  socket.write(request);
  return (text) => {
    if (answer.isDone) return;
    answer.push(text);
    if (answer.isDone) finish();
  };
}
