import { createHash, hash } from "node:crypto";

/** sha256 of the UTF-8 of a text, or of its pieces one after the other, lower case hex. */
export const sha256 = (text: string | readonly string[]): string =>
  typeof text === "string" ? hash("sha256", text, "hex") : sha256OfPieces(text);

/** Pieces are hashed together if they fit in here: a call for each of them would take longer than the hash. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024);
const BYTES_PER_CHARACTER = 3;

function sha256OfPieces(pieces: readonly string[]): string {
  const whole = createHash("sha256");
  let end = 0;
  for (const piece of pieces) {
    const most = piece.length * BYTES_PER_CHARACTER;
    if (most > buffer.length - end) {
      whole.update(buffer.subarray(0, end));
      end = 0;
    }
    if (most > buffer.length) whole.update(piece);
    else end += buffer.write(piece, end);
  }
  return whole.update(buffer.subarray(0, end)).digest("hex");
}

/** Bytes with a buffer of their own, which is transferred instead of copied; small Buffers share one and are copied. */
export const movable = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.byteLength === bytes.buffer.byteLength ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
