import type { Socket } from "node:net";
import { HttpAnswer } from "../../api/decide/probes/http-answer.ts";
import type { HttpHead } from "../../api/decide/probes/http-head.ts";
import { requestText, type WireRequest } from "../../api/decide/probes/http-wire.ts";
import type { Opened } from "./bounded.ts";
import { endsOf } from "./socket-ends.ts";
import { tlsWords } from "./tls-words.ts";

/** What came of one request over one connection. */
export interface Exchanged {
  /** Undefined: there was none, and the error says why. */
  readonly head: HttpHead | undefined;
  /** A text of bytes: as much as was wanted. */
  readonly body: string;
  /** Go's words; with a head, of the body. */
  readonly error: string | undefined;
}
export interface Listening {
  /** How many bytes of the body are asked for, by the head. */
  readonly wanted: (head: HttpHead) => number;
}

/**
 * One request of HTTP/1.1 over a connection of its own, closed behind it. Node's client needs thrice the time for a new
 * connection each, and has other words for an answer that is none.
 */
export function exchangeHttp1(
  socket: Socket,
  request: WireRequest,
  { wanted }: Listening,
  opened: Opened,
): Promise<Exchanged> {
  const { local, remote } = endsOf(socket);
  const answer = new HttpAnswer(wanted);
  return new Promise((resolve) => {
    const finish = (): void => {
      opened.close(socket);
      resolve({ head: answer.head, body: answer.body, error: answer.error });
    };
    const end = (error?: Error): void => {
      if (answer.isDone) return;
      answer.end(error === undefined ? undefined : tlsWords(error, local, remote));
      finish();
    };
    socket.on("data", (bytes: Buffer) => {
      if (answer.isDone) return;
      answer.push(bytes.toString("latin1"));
      if (answer.isDone) finish();
    });
    socket.on("error", end);
    socket.on("end", () => end());
    socket.on("close", () => end());
    socket.write(requestText(request));
  });
}
