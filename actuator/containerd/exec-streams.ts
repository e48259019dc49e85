import { request } from "node:http";
import type { Socket } from "node:net";
import { err, ok, type Result } from "../../api/base/result.ts";

/**
 * The part of SPDY/3.1 framing that a client needs to open, write and read streams of CRI's streaming servers. TCP does the
 * flow control, and the headers of replies are not needed.
 */

/** A received frame. `data`: of its stream; `isLast`: the stream ends. Other control frames have neither. */
interface SpdyFrame {
  readonly type: number;
  readonly streamId: number;
  readonly isLast: boolean;
  readonly data: Buffer;
}

const HEAD_BYTES = 8;
const CONTROL = 0x80;
const VERSION = 3;
const FIN = 0x01;
const DATA = 0;
const SYN_STREAM = 1;
const RESET = 3;
const PING = 6;
/** A frame's length has 24 bits. */
const MAX_BYTES = 0xffffff;

function headOf(first: number, flags: number, length: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(first >>> 0);
  head.writeUInt32BE(((flags << 24) | length) >>> 0, 4);
  return head;
}
const controlHead = (type: number, length: number): Buffer =>
  headOf((((CONTROL << 8) | VERSION) << 16) | type, 0, length);

/**
 * Opens a stream. The headers of all frames of a connection are one zlib stream, which `isFirst` begins: written as stored
 * blocks, each followed by the empty block of a flush.
 */
function openFrame(streamId: number, headers: Readonly<Record<string, string>>, isFirst: boolean): Buffer {
  const texts = Object.entries(headers).flat();
  const block = texts.flatMap((text) => [uint32(Buffer.byteLength(text)), Buffer.from(text)]);
  const body = Buffer.concat([
    uint32(streamId),
    uint32(0),
    Buffer.alloc(2),
    isFirst ? ZLIB : NOTHING,
    stored(Buffer.concat([uint32(texts.length / 2), ...block])),
    stored(NOTHING),
  ]);
  return Buffer.concat([controlHead(SYN_STREAM, body.length), body]);
}
const ZLIB = Buffer.from([0x78, 0x01]);
const NOTHING = Buffer.alloc(0);
function stored(block: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(block.length, 1);
  head.writeUInt16LE(~block.length & 0xffff, 3);
  return Buffer.concat([head, block]);
}
function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** `isLast`: nothing more will be written to the stream. INVARIANT: fewer than 16 MiB. */
function dataFrame(streamId: number, data: Uint8Array, isLast = false): Buffer {
  if (data.length > MAX_BYTES) throw new RangeError("a frame has at most 16 MiB");
  return Buffer.concat([headOf(streamId, isLast ? FIN : 0, data.length), data]);
}

/** The answer to a ping; null: the frame is no ping. */
const pongOf = ({ type, streamId }: SpdyFrame): Buffer | null =>
  type === PING ? Buffer.concat([controlHead(PING, 4), uint32(streamId)]) : null;

/** The frames of a connection, as they become whole. */
class SpdyFrames {
  #rest: Buffer = Buffer.alloc(0);

  push(bytes: Buffer): readonly SpdyFrame[] {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const frames: SpdyFrame[] = [];
    while (this.#rest.length >= HEAD_BYTES) {
      const length = this.#rest.readUInt32BE(4) & MAX_BYTES;
      if (this.#rest.length < HEAD_BYTES + length) break;
      frames.push(frameOf(this.#rest.subarray(0, HEAD_BYTES + length)));
      this.#rest = this.#rest.subarray(HEAD_BYTES + length);
    }
    return frames;
  }
}

function frameOf(bytes: Buffer): SpdyFrame {
  const flags = bytes[4] ?? 0;
  const data = bytes.subarray(HEAD_BYTES);
  const isData = ((bytes[0] ?? 0) & CONTROL) === 0;
  if (isData) return { type: DATA, streamId: bytes.readUInt32BE(0), isLast: (flags & FIN) !== 0, data };
  const type = bytes.readUInt16BE(2);
  const streamId = data.length < 4 ? 0 : data.readUInt32BE(0) & (type === PING ? 0xffffffff : 0x7fffffff);
  return { type, streamId: streamId >>> 0, isLast: type === RESET, data: Buffer.alloc(0) };
}

/** The local streams of a command; null: it has none. */
interface ExecStreams {
  readonly stdin: NodeJS.ReadableStream | null;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream | null;
  /** The local terminal, whose size the command's terminal gets. */
  readonly terminal: (NodeJS.EventEmitter & { readonly columns?: number; readonly rows?: number }) | null;
}
interface ExecEnded {
  /** The exit code; null: the command could not be started, see `message`. */
  readonly exitCode: number | null;
  readonly message: string;
}

const PROTOCOL = "v4.channel.k8s.io";
const CONNECT_MS = 10_000;

/**
 * Connects streams to a command that CRI's Exec prepared at `url`, over SPDY/3.1: only SPDY can signal the end of
 * standard input; the WebSocket of CRI's stream servers (up to Kubernetes 1.36) cannot. Resolves when the command has
 * ended. Error: the stream server refused or disconnected early, as a sentence.
 */
export async function execStreams(url: string, streams: ExecStreams): Promise<Result<ExecEnded, string>> {
  const upgraded = await upgrade(url);
  if (!upgraded.ok) return upgraded;
  return new Promise((resolve) => new Session(upgraded.value, streams, resolve).begin());
}

interface Upgraded {
  readonly socket: Socket;
  /** Bytes that arrived together with the response's headers. */
  readonly head: Buffer;
}
function upgrade(url: string): Promise<Result<Upgraded, string>> {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== "http:") {
    const why = "it supports only http: switch off enable_tls_streaming of containerd's cri plugin";
    return Promise.resolve(err(`the runtime's stream server is at ${url}: ${why}`));
  }
  const headers = { connection: "Upgrade", upgrade: "SPDY/3.1", "x-stream-protocol-version": PROTOCOL };
  return new Promise((resolve) => {
    const failed = (why: string): void => resolve(err(`the runtime's stream server at ${parsed.host}: ${why}`));
    const asked = request(parsed, { method: "POST", headers, agent: false, timeout: CONNECT_MS });
    asked.on("upgrade", (_, socket, head) => {
      socket.setTimeout(0);
      resolve(ok({ socket: socket as Socket, head }));
    });
    asked.on("response", (answer) => {
      answer.resume();
      failed(`it answered ${answer.statusCode} ${answer.statusMessage}`);
    });
    asked.on("timeout", () => asked.destroy(new Error(`no answer in ${CONNECT_MS / 1000} s`)));
    asked.on("error", ({ message }) => failed(message));
    asked.end();
  });
}

type Name = "error" | "stdin" | "stdout" | "stderr" | "resize";

/** The streams of one command over one connection. */
class Session {
  readonly #socket: Socket;
  readonly #streams: ExecStreams;
  readonly #end: (ended: Result<ExecEnded, string>) => void;
  readonly #names: readonly Name[];
  readonly #frames = new SpdyFrames();
  readonly #head: Buffer;
  /** The streams that the command still writes to. */
  readonly #open: Set<Name>;
  readonly #status: Buffer[] = [];

  constructor({ socket, head }: Upgraded, streams: ExecStreams, end: (ended: Result<ExecEnded, string>) => void) {
    this.#socket = socket;
    this.#head = head;
    this.#streams = streams;
    this.#end = end;
    const { stdin, stderr, terminal } = streams;
    const wanted = {
      error: true,
      stdin: stdin !== null,
      stdout: true,
      stderr: stderr !== null,
      resize: terminal !== null,
    };
    this.#names = (Object.keys(wanted) as Name[]).filter((name) => wanted[name]);
    this.#open = new Set(this.#names.filter((name) => name !== "stdin" && name !== "resize"));
  }

  begin(): void {
    const socket = this.#socket;
    for (const [index, name] of this.#names.entries())
      socket.write(openFrame(idAt(index), { streamtype: name }, index === 0));
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on("error", () => {});
    socket.on("close", () => this.#close());
    this.#read(this.#head);
    this.#passInput();
    this.#passSize();
  }

  #read(bytes: Buffer): void {
    for (const frame of this.#frames.push(bytes)) {
      const pong = pongOf(frame);
      if (pong !== null) this.#socket.write(pong);
      this.#take(frame);
    }
    if (this.#open.size === 0) this.#socket.end();
  }
  #take({ streamId, data, isLast }: SpdyFrame): void {
    const name = this.#names[(streamId - 1) / 2];
    if (name === "error") this.#status.push(data);
    else if (name === "stdout") this.#streams.stdout.write(data);
    else if (name === "stderr") this.#streams.stderr?.write(data);
    if (isLast && name !== undefined) this.#open.delete(name);
  }

  /** Sends input no faster than the command reads it. */
  #passInput(): void {
    const { stdin } = this.#streams;
    if (stdin === null) return;
    const id = this.#idOf("stdin");
    stdin.on("data", (bytes: Buffer) => {
      if (this.#socket.writableEnded || this.#socket.write(dataFrame(id, bytes))) return;
      stdin.pause();
      this.#socket.once("drain", () => stdin.resume());
    });
    stdin.on("end", () => {
      if (!this.#socket.writableEnded) this.#socket.write(dataFrame(id, Buffer.alloc(0), true));
    });
  }
  #passSize(): void {
    const { terminal } = this.#streams;
    if (terminal === null) return;
    const pass = (): void => {
      const { columns: Width, rows: Height } = terminal;
      if (Width === undefined || Height === undefined || this.#socket.writableEnded) return;
      this.#socket.write(dataFrame(this.#idOf("resize"), Buffer.from(`${JSON.stringify({ Width, Height })}\n`)));
    };
    pass();
    terminal.on("resize", pass);
    this.#socket.once("close", () => terminal.off("resize", pass));
  }

  #close(): void {
    const text = Buffer.concat(this.#status).toString();
    const status = statusOf(text);
    this.#end(
      status === null
        ? err("the runtime's stream server ended the connection before the command had ended")
        : ok(status),
    );
  }
  #idOf(name: Name): number {
    return idAt(this.#names.indexOf(name));
  }
}
/** A client's streams have odd numbers. */
const idAt = (index: number): number => 2 * index + 1;

/** Parses the v1.Status with which remotecommand's version 4 ends; null: the text is none. */
function statusOf(text: string): ExecEnded | null {
  try {
    const status = JSON.parse(text) as {
      readonly status?: string;
      readonly reason?: string;
      readonly message?: string;
      readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
    };
    const { message = "" } = status;
    if (status.status === "Success") return { exitCode: 0, message };
    const cause = status.details?.causes?.find(({ reason }) => reason === "ExitCode");
    const exitCode = status.reason === "NonZeroExitCode" && cause?.message !== undefined ? Number(cause.message) : null;
    return { exitCode, message };
  } catch {
    return null;
  }
}
