import { connect, type Socket } from "node:net";

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}
export const SETTINGS = frame(4, 0, 0, Buffer.alloc(0));
export const data = (stream: number, message: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return frame(0, 1, stream, Buffer.concat([head, message]));
};

/** An HPACK string without Huffman coding, of fewer than 127 bytes. */
export const plain = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);

export type Style = "indexed name" | "written name" | "Huffman name" | "never indexed";
/** A header block of a gRPC request with the given `:authority`. */
export function headers(path: string, authority: Buffer, style: Style): Buffer {
  const name = {
    "indexed name": Buffer.from([0x41]),
    "written name": Buffer.concat([Buffer.from([0x40]), plain(":authority")]),
    "Huffman name": Buffer.concat([Buffer.from([0x40, 0x88]), Buffer.from("b83b5339ec327d7f", "hex")]),
    "never indexed": Buffer.from([0x11]),
  }[style];
  const rest = [
    [Buffer.from([0x5f]), plain("application/grpc")],
    [Buffer.from([0x40]), plain("te"), plain("trailers")],
  ];
  // :method POST, :scheme http, :path
  const begin = [Buffer.from([0x83, 0x86, 0x44]), plain(path)];
  return Buffer.concat([...begin, name, authority, ...rest.flat()]);
}

export interface Raw {
  readonly socket: Socket;
  /** All bytes received so far. */
  received(): Buffer;
  readonly closed: Promise<void>;
}
export function rawConnection(path: string): Promise<Raw> {
  const chunks: Buffer[] = [];
  const socket = connect(path);
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  return new Promise((resolve) =>
    socket.on("connect", () => resolve({ socket, received: () => Buffer.concat(chunks), closed })),
  );
}

/** The type, stream and payload of each whole frame. */
export function framesIn(bytes: Buffer): { type: number; stream: number; payload: Buffer }[] {
  const frames: { type: number; stream: number; payload: Buffer }[] = [];
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3);
    const payload = bytes.subarray(at + 9, at + 9 + length);
    frames.push({ type: bytes[at + 3] ?? 0, stream: bytes.readUInt32BE(at + 5), payload });
    at += 9 + length;
  }
  return frames;
}
