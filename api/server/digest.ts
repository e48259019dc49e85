import { hash } from "node:crypto";

/** sha256 of the UTF-8 of a text, lower case hex. */
export const sha256 = (text: string): string => hash("sha256", text, "hex");

/** Bytes with a buffer of their own, which is transferred instead of copied; small Buffers share one and are copied. */
export const movable = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.byteLength === bytes.buffer.byteLength ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
