import { err, ok, type Result } from "../../api/model/result.ts";
import { codeOf, type GrpcStatus, internal } from "./grpc-status.ts";

/** A flag, and the size of what follows. */
const PREFIX_BYTES = 5;
/** Go's gRPC takes no larger message either. */
const MOST_BYTES = 4 * 1024 * 1024;

export function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The one message of an answer, as far as it came. Errors in the words of Go's gRPC. */
export class GrpcMessage {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  /** What is wrong already; undefined: nothing yet. */
  push(part: Buffer): GrpcStatus | undefined {
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes < PREFIX_BYTES) return undefined;
    const size = this.#joined().readUInt32BE(1);
    if (size > MOST_BYTES) {
      const message = `grpc: received message larger than max (${size} vs. ${MOST_BYTES})`;
      return { code: codeOf("ResourceExhausted"), message };
    }
    return this.#bytes > PREFIX_BYTES + size ? internal(`${CARDINALITY}: ${TWO}`) : undefined;
  }
  /** When all of the answer is there. */
  whole(): Result<Buffer, GrpcStatus> {
    const bytes = this.#joined();
    if (bytes.length === 0) return err(internal(`${CARDINALITY}: ${NONE}`));
    if (bytes.length < PREFIX_BYTES || bytes.length < PREFIX_BYTES + bytes.readUInt32BE(1)) {
      return err(internal("unexpected EOF"));
    }
    if (bytes[0] !== 0) return err(internal("grpc: compressed flag set with identity or empty encoding"));
    return ok(bytes.subarray(PREFIX_BYTES));
  }
  #joined(): Buffer {
    const bytes = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#parts.splice(0, this.#parts.length, bytes);
    return bytes;
  }
}
const CARDINALITY = "cardinality violation";
const NONE = "received no response message from non-server-streaming RPC";
const TWO = "expected <EOF> for non server-streaming RPCs, but received another message";
