import { hex } from "../api/base/hex.ts";
import { ok, type Result } from "../api/base/result.ts";
import { corruptRow, failure, type StoreFailure } from "./failure.ts";

export const ENCODINGS = ["json", "gzip"] as const;

type Encoding = (typeof ENCODINGS)[number];

/** Which bodies are stored compressed, and how; a platform with synchronous compression compresses more of them. */
export interface Packing {
  /** A body that is not compressed is stored as bytes too: the database's columns have one type. */
  readonly areBytes?: true;
  /** Bodies above this many bytes are compressed. */
  readonly above: number;
  readonly gzip: (plain: Uint8Array<ArrayBuffer>) => Uint8Array | Promise<Uint8Array>;
  /** The inverse. Throws or rejects if the bytes are not gzip. */
  readonly gunzip: (packed: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}
/** A body that may cost milliseconds to compress. */
const LARGE = 64 * 1024;
/** The maximum size of a row's long texts, in bytes as stored; D1 refuses rows a little larger. All drivers use it, so a history can move. */
export const MAX_ROW_BYTES = 1_000_000;

/** The maximum UTF-16 length of one text, over all its rows: longer than the answer to any allowed request. */
export const MAX_BODY_LENGTH = 32 * 1024 * 1024;

export interface StoredBody {
  readonly encoding: Encoding;
  /** The size before compression, in UTF-8. */
  readonly bytes: number;
  readonly body: string | Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Whether the text may need compression, which is worth avoiding for a body that is already stored. */
export const isLarge = (text: string): boolean => text.length > LARGE;

async function pipe(
  bytes: Uint8Array<ArrayBuffer>,
  through: CompressionStream | DecompressionStream,
): Promise<ArrayBuffer> {
  return new Response(new Blob([bytes]).stream().pipeThrough(through)).arrayBuffer();
}

/** Compression with web APIs, which exist everywhere and are slow. */
export const WEB_PACKING: Packing = {
  above: LARGE,
  gzip: async (plain) => new Uint8Array(await pipe(plain, new CompressionStream("gzip"))),
  gunzip: async (packed) => new Uint8Array(await pipe(new Uint8Array(packed), new DecompressionStream("gzip"))),
};
/** sha256 of the text's UTF-8, lower case hex, likewise. */
export async function webDigest(text: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

/** The part of a body that fits into its row, and the slices that follow, which are stored separately. */
interface SlicedBody extends StoredBody {
  readonly slices: readonly Uint8Array[];
}

const tooLarge = (what: string, found: string, most: string): Result<never, StoreFailure> =>
  failure("too_large", `${what}: ${found}, the history takes ${most}; send less`);

/** JSON text -> what a row holds, and what does not fit. `what` names the row in a failure; `beside`: bytes of the row's other long texts. */
export async function encodeSliced(
  what: string,
  text: string,
  packing: Packing,
  beside = 0,
): Promise<Result<SlicedBody, StoreFailure>> {
  if (text.length > MAX_BODY_LENGTH) {
    return tooLarge(what, `${text.length} characters of JSON`, `${MAX_BODY_LENGTH}`);
  }
  const plain = encoder.encode(text);
  const bytes = plain.byteLength;
  if (bytes <= packing.above && beside + bytes <= MAX_ROW_BYTES) {
    return ok({ encoding: "json", bytes, body: packing.areBytes === true ? plain : text, slices: [] });
  }
  const packed = await packing.gzip(plain);
  if (packed.byteLength + beside <= MAX_ROW_BYTES) return ok({ encoding: "gzip", bytes, body: packed, slices: [] });
  const slices: Uint8Array[] = [];
  for (let from = 0; from < packed.byteLength; from += MAX_ROW_BYTES) {
    slices.push(packed.slice(from, from + MAX_ROW_BYTES));
  }
  return ok({ encoding: "gzip", bytes, body: new Uint8Array(0), slices });
}

/** Encodes like `encodeSliced`, for a body that must fit into its row. */
export async function encodeBody(
  what: string,
  text: string,
  packing: Packing,
): Promise<Result<StoredBody, StoreFailure>> {
  const encoded = await encodeSliced(what, text, packing);
  if (!encoded.ok) return encoded;
  const { slices, ...whole } = encoded.value;
  if (slices.length === 0) return ok(whole);
  const stored = slices.reduce((sum, slice) => sum + slice.byteLength, 0);
  return tooLarge(what, `${whole.bytes} bytes of JSON are ${stored} bytes with compression`, `${MAX_ROW_BYTES} a row`);
}

/** Decodes the result of `encodeBody`. A body that does not match its row is `corrupt`. */
export async function decodeBody(
  what: string,
  stored: StoredBody,
  { gunzip }: Pick<Packing, "gunzip">,
): Promise<Result<string, StoreFailure>> {
  const { encoding, body, bytes } = stored;
  if (encoding === "json") return ok(typeof body === "string" ? body : decoder.decode(body));
  const advice = "restore the database from a backup";
  if (typeof body === "string") {
    return corruptRow(`${what}: its encoding is \`${encoding}\`, its body ${typeof body}; ${advice}`);
  }
  try {
    return ok(decoder.decode(await gunzip(body)));
  } catch {
    return corruptRow(`${what}: its compressed body of ${bytes} bytes cannot be read; ${advice}`);
  }
}

/** The number of bytes in a row. */
export const storedBytes = ({ body, bytes }: StoredBody): number =>
  typeof body === "string" ? bytes : body.byteLength;

/** UTF-8 bytes of a text. */
export const byteLength = (text: string): number => encoder.encode(text).byteLength;
