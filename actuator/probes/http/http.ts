import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { memo, perObject } from "../../../api/base/cache.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { quote, quoteBytes } from "../../../api/decide/go/strconv.ts";
import { hostAndPort, textOf } from "../../../api/decide/go/url.ts";
import { HttpAnswer, type HttpHead } from "../../../api/decide/probes/http-answer.ts";
import { type HttpRequest, httpRequest } from "../../../api/decide/probes/http-request.ts";
import {
  isRedirect,
  redirected,
  requestText,
  shownUrl,
  type WireRequest,
  wireRequest,
} from "../../../api/decide/probes/http-wire.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import {
  addressesOf,
  bounded,
  dial,
  dialTo,
  type OpenConnections,
  PlainSocket,
  type ProbeTarget,
  type SocketAddresses,
  streamFault,
  tlsWords,
} from "../net/dial.ts";
import { secured } from "../net/tls.ts";

/** A stream that its server refused: the same request may be sent again. */
const REFUSED = Symbol("refused");

/** Sends one HTTP/2 request over a connection whose server chose it. */
function exchangeHttp2(
  socket: TLSSocket,
  request: WireRequest,
  { bodyLimitOf }: ExchangeHooks,
  opened: OpenConnections,
): Promise<Exchanged | typeof REFUSED> {
  return new Promise((resolve) => {
    const session = opened.add(
      connect("https://localhost", { createConnection: () => socket, settings: { enablePush: false } }),
    );
    let head: HttpHead | undefined;
    let most = 0;
    let body = "";
    let bytesSeen = 0;
    const finish = (error?: string): void => {
      resolve({ head, body, error });
      opened.close(session);
    };
    session.on("error", () => finish("unexpected EOF"));
    session.on("close", () => finish("unexpected EOF"));
    const stream = openStream(session, request);
    stream.on("response", (headers) => {
      head = headOf(headers);
      most = bodyLimitOf(head);
      if (most === 0) finish();
      // the listener is added here, since data that arrives with the head is emitted before the head
      else stream.on("data", take);
    });
    const take = (bytes: Buffer): void => {
      bytesSeen += bytes.length;
      body = (body + bytes.toString("latin1")).slice(0, most);
      if (body.length === most) finish();
    };
    // a closed connection cancels its streams
    const fault = (): string => {
      // Node resets a stream whose body is shorter than its declared length
      const isShort = stream.rstCode === constants.NGHTTP2_PROTOCOL_ERROR && bytesSeen < (head?.length ?? -1);
      return session.destroyed || isShort ? "unexpected EOF" : streamFault(stream.rstCode);
    };
    const ended = (): void => {
      if (head === undefined && !session.destroyed && stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) {
        resolve(REFUSED);
      }
      finish(fault());
    };
    stream.on("error", ended);
    stream.on("end", () => {
      // a reset also emits `end`, and is reported after it
      if (head !== undefined && stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted) finish();
    });
    stream.on("close", ended);
  });
}

/** HTTP/1 connection headers, which HTTP/2 does not have. */
const OF_HTTP1: ReadonlySet<string> = new Set(["connection", "keep-alive", "proxy-connection", "upgrade", "te"]);
function openStream(session: ClientHttp2Session, { target, host, headers }: WireRequest) {
  const fields: Record<string, string | string[]> = {
    [constants.HTTP2_HEADER_METHOD]: "GET",
    [constants.HTTP2_HEADER_SCHEME]: "https",
    [constants.HTTP2_HEADER_AUTHORITY]: host,
    [constants.HTTP2_HEADER_PATH]: target,
  };
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (OF_HTTP1.has(key)) continue;
    const known = fields[key];
    fields[key] = known === undefined ? value : [known, value].flat();
  }
  return session.request(fields);
}

function headOf(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): HttpHead {
  const length = Number(headers["content-length"] ?? "-1");
  return {
    status: headers[":status"] ?? 0,
    location: headers.location ?? "",
    length: Number.isSafeInteger(length) ? length : -1,
    isChunked: false,
  };
}

/** A request in the form in which it is sent. */
type PreparedRequest = PlainRequest | SecureRequest;
interface PlainRequest {
  readonly isSecure: false;
  readonly host: string;
  readonly port: number;
  /** The request as HTTP/1.1 text. */
  readonly text: string;
}
interface SecureRequest extends Omit<PlainRequest, "isSecure"> {
  readonly isSecure: true;
  /** The request for HTTP/2. */
  readonly wire: WireRequest;
}
/** Error: Go's words for a request that cannot be sent. */
function sentForm(request: HttpRequest): Result<PreparedRequest, string> {
  const wire = wireRequest(request);
  if (!wire.ok) return wire;
  const { hostname: host, port } = hostAndPort(request.url);
  const text = requestText(wire.value);
  return request.url.scheme === "https"
    ? ok({ isSecure: true, host, port: port === "" ? 443 : Number(port), wire: wire.value, text })
    : ok({ isSecure: false, host, port: port === "" ? 80 : Number(port), text });
}

/** Connects, sends the request, and closes; it uses HTTP/2 if a TLS server accepts it, as the kubelet's client does. */
function exchange(request: PreparedRequest, listening: ExchangeHooks, opened: OpenConnections): Promise<Exchanged> {
  if (request.isSecure) return exchangeSecure(request, listening, opened);
  // most probes take this path: no promise between connecting and the response
  return new Promise((resolve) => {
    dialTo(request.host, request.port, opened, makePlain, (socket) => {
      if (socket.ok) exchangePlain(socket.value, request.text, listening, opened, resolve);
      else resolve(none(socket.error.words));
    });
  });
}
const makePlain = (address: string, port: number): PlainSocket => new PlainSocket(address, port);

/** Go's number of retries if an HTTP/2 server refuses a stream: at once, then after 1, 2, 4 ... seconds. */
const MAX_RETRIES = 6;

async function exchangeSecure(
  request: SecureRequest,
  listening: ExchangeHooks,
  opened: OpenConnections,
): Promise<Exchanged> {
  for (let retry = 0; ; retry++) {
    const exchanged = await exchangeSecureOnce(request, listening, opened);
    if (exchanged !== REFUSED) return exchanged;
    if (retry === MAX_RETRIES) return none(streamFault(constants.NGHTTP2_REFUSED_STREAM));
    listening.onStage("retry");
    if (retry > 0) await delay(2 ** (retry - 1) * 1000, opened);
  }
}
/** Never resolves if the attempt ends first. */
const delay = (ms: number, opened: OpenConnections): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    opened.add({ destroy: () => clearTimeout(timer) });
  });

async function exchangeSecureOnce(
  request: SecureRequest,
  listening: ExchangeHooks,
  opened: OpenConnections,
): Promise<Exchanged | typeof REFUSED> {
  const { host, port, wire, text } = request;
  const plain = await dial(host, port, opened);
  if (!plain.ok) return none(plain.error.words);
  listening.onStage("handshake");
  return new Promise((resolve) => {
    secured(plain.value, host, opened, (secure) => {
      if (!secure.ok) {
        resolve(none(secure.error));
        return;
      }
      listening.onStage("answer");
      const isHttp2 = secure.value.alpnProtocol === "h2";
      if (isHttp2) resolve(exchangeHttp2(secure.value, wire, listening, opened));
      else resolve(exchangeHttp1(secure.value, text, listening, opened));
    });
  });
}
const none = (error: string): Exchanged => ({ head: undefined, body: "", error });

/** The length up to which the body of a redirect is read; a longer body is not read at all. Go 1.26: Client.do. */
const MAX_PASSED_BYTES = 2048;
const MAX_REQUESTS = 10;

/** The state of a request: the error text at a timeout depends on it. */
interface Progress {
  /** The request that waits for its response. */
  request: HttpRequest;
  /** The form in which it is sent. */
  sent: Result<PreparedRequest, string>;
  /** True: the last response has arrived except for its body. */
  isInBody: boolean;
  /** Undefined: a response is awaited. */
  stage?: Stage;
}
interface LastAnswer {
  readonly status: number;
  /** One character per byte. */
  readonly body: string;
  /** The error of the body, in Go's words; undefined: none. */
  readonly error: string | undefined;
}

/** A request that waits for its response, with the form in which it is sent. */
export const prepared = (request: HttpRequest): Pick<Progress, "request" | "sent"> => ({
  request,
  sent: sentForm(request),
});

/**
 * Sends a request and follows redirects as long as they stay on the same host, as the kubelet's client for containers does.
 * Error: Go's words, `Get "http://10.0.0.1:80/": EOF`. kubelet 1.36: RedirectChecker; Go 1.26: Client.do.
 * @param maxBytes limit for the last response's body
 */
export async function follow(
  progress: Progress,
  maxBytes: number,
  opened: OpenConnections,
): Promise<Result<LastAnswer, string>> {
  const first = progress.request;
  const onStage = (stage: Stage): void => {
    progress.stage = stage;
  };
  for (let asked = 1; ; asked++) {
    const { request, sent } = progress;
    if (!sent.ok) return err(inGet(request, sent.error));
    let next: ReturnType<typeof redirected> = ok(null);
    const bodyLimitOf = ({ status, location, length }: HttpHead): number => {
      if (isRedirect(status, location)) next = redirected(first, request, location);
      if (!next.ok) return 0;
      progress.isInBody = next.value === null;
      if (next.value === null) return maxBytes;
      // whatever happens to this body, the next response is awaited
      Object.assign(progress, prepared(next.value));
      progress.stage = "answer";
      return length <= MAX_PASSED_BYTES ? MAX_PASSED_BYTES : 0;
    };
    const { head, body, error } = await exchange(sent.value, { bodyLimitOf, onStage }, opened);
    if (head === undefined) return err(inGet(request, error ?? "EOF"));
    if (!next.ok) return err(inGet(request, next.error));
    if (next.value === null) return ok({ status: head.status, body, error });
    if (asked === MAX_REQUESTS) {
      return err(`Get ${quoteBytes(head.location)}: stopped after ${MAX_REQUESTS} redirects`);
    }
  }
}

/** The error of a request in the words of Go's client. */
const inGet = ({ url }: HttpRequest, words: string): string => `Get ${quote(shownUrl(url))}: ${words}`;

/** The request of a probe, cached as long as its pod does not change. Error: the kubelet's words. */
const probeRequests = perObject((get: ProbeHttpGet) =>
  perObject((ports: ProbeTarget["ports"], profile: Profile) =>
    memo(1, (podIP) => {
      const request = httpRequest(get, ports, podIP, "probe", profile);
      return request.ok ? ok(prepared(request.value)) : request;
    }),
  ),
);

/** kubelet 1.36: pkg/probe/http, maxRespBodyLength. */
const MAX_BODY_BYTES = 10 * 1024;

/**
 * Probes by HTTP: status 200 to 399 is a success, a final redirect a warning, any other status a failure; a response
 * whose body breaks off is an error. No proxy, no certificate check. kubelet 1.36: pkg/probe/http, DoHTTPProbe.
 */
export function httpProbe(
  get: ProbeHttpGet,
  { podIP, ports, profile }: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeOutcome> {
  const prepared = probeRequests(get)(ports, profile)(podIP);
  return prepared.ok ? ask(prepared.value, timeoutMs) : Promise.resolve({ error: prepared.error });
}

function ask(first: Pick<Progress, "request" | "sent">, timeoutMs: number): Promise<ProbeOutcome> {
  const progress: Progress = { ...first, isInBody: false };
  const work = (opened: OpenConnections): Promise<ProbeOutcome> =>
    follow(progress, MAX_BODY_BYTES, opened).then(outcomeOf);
  const late = (): ProbeOutcome =>
    progress.isInBody
      ? {
          error: "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
          state: "failure",
        }
      : { result: "failure", output: inGet(progress.request, BEFORE_HEAD[progress.stage ?? "answer"]) };
  return bounded(timeoutMs, work, late, (error) => ({ error: (error as Error).message }));
}
/** Go has several texts for some of these cases, and picks among them by chance. */
const NO_HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
const BEFORE_HEAD: Readonly<Record<Stage, string>> = {
  answer: NO_HEADERS,
  handshake: "context deadline exceeded",
  retry: "context deadline exceeded",
};

function outcomeOf(answer: Result<LastAnswer, string>): ProbeOutcome {
  if (!answer.ok) return { result: "failure", output: answer.error };
  const { status, body, error } = answer.value;
  if (error !== undefined) return { error, state: "failure" };
  if (status < 200 || status >= 400) {
    // without the body, which may contain what an event must not
    return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  }
  const text = textOf(body);
  return status < 300
    ? { result: "success", output: text }
    : { result: "warning", output: `Probe terminated redirects, Response body: ${text}` };
}

/** The outcome of one request over one connection. */
interface Exchanged {
  /** Undefined: there was no response, and the error says why. */
  readonly head: HttpHead | undefined;
  /** One character per byte, up to the requested length. */
  readonly body: string;
  /** Go's words; if there is a head, the error is about the body. */
  readonly error: string | undefined;
}
/** The stage of a request: the error text at a timeout depends on it. */
type Stage = "answer" | "handshake" | "retry";
interface ExchangeHooks {
  /** The number of bytes of the body to read, decided by the head. */
  readonly bodyLimitOf: (head: HttpHead) => number;
  /** Called for requests over TLS only. */
  readonly onStage: (stage: Stage) => void;
}

/**
 * Sends one HTTP/1.1 request over a new connection, which is closed afterwards. Node's client takes three times as long for
 * a new connection, and words invalid responses differently.
 */
function exchangeHttp1(
  socket: Socket,
  request: string,
  listening: ExchangeHooks,
  opened: OpenConnections,
): Promise<Exchanged> {
  const ends = addressesOf(socket);
  return new Promise((resolve) => {
    const push = asked(socket, request, listening, opened, () => ends, resolve);
    socket.on("data", (bytes: Buffer) => push(bytes.toString("latin1")));
  });
}

/** As exchangeHttp1, without TLS; `done` is called once. */
function exchangePlain(
  socket: PlainSocket,
  request: string,
  listening: ExchangeHooks,
  opened: OpenConnections,
  done: (exchanged: Exchanged) => void,
): void {
  socket.onText(asked(socket, request, listening, opened, () => socket.ends, done));
}

/** Sends a request and waits for the end; it returns the function that takes the response's text. */
function asked(
  socket: Socket,
  request: string,
  { bodyLimitOf }: ExchangeHooks,
  opened: OpenConnections,
  endsNow: () => SocketAddresses,
  done: (exchanged: Exchanged) => void,
): (text: string) => void {
  const answer = new HttpAnswer(bodyLimitOf);
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
