/** Bytes with a buffer of their own, which is handed over rather than copied; small Buffers share one, and are copied. */
export const movable = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.byteLength === bytes.buffer.byteLength ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
