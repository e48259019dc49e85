/**
 * HPACK (RFC 7541) of a header block, as far as it takes to find `:authority`. grpc-go up to 1.38 sends the path of the
 * socket there, which is no authority, and Node's HTTP/2 then refuses the stream.
 */
const NAME = ":authority";
/** The same in HPACK's Huffman code. */
const HUFFMAN_NAME = Buffer.from("b83b5339ec327d7f", "hex");
/** Its place in the static table. */
const STATIC_INDEX = 1;
const AUTHORITY = "localhost";
const MOST_INTEGER = 2 ** 28;

/**
 * The header block with each `:authority` that is written out replaced by one that HTTP/2 takes; everything else as it
 * was. Who sends it keeps a table of what it sent, which stays in step: the place is kept, and the value never grows, so
 * that here nothing is forgotten that is still known there. Undefined: nothing to replace, or a block that cannot be
 * read, which is left to the one who will refuse it.
 */
export function withAuthority(block: Buffer): Buffer | undefined {
  const cursor: Cursor = { block, at: 0, isBroken: false };
  const parts: Buffer[] = [];
  let kept = 0;
  while (cursor.at < block.length) {
    const first = block[cursor.at] as number;
    if (first >= 0x80) integer(cursor, 7);
    else if ((first & 0xe0) === 0x20) integer(cursor, 5);
    else {
      const index = integer(cursor, first >= 0x40 ? 6 : 4);
      const isAuthority = index === 0 ? isName(text(cursor)) : index === STATIC_INDEX;
      const from = cursor.at;
      const { bytes } = text(cursor);
      if (isAuthority && !cursor.isBroken) {
        const value = bytes.length < AUTHORITY.length ? AUTHORITY.slice(0, 1) : AUTHORITY;
        parts.push(block.subarray(kept, from), Buffer.from([value.length]), Buffer.from(value));
        kept = cursor.at;
      }
    }
    if (cursor.isBroken) return undefined;
  }
  return kept === 0 ? undefined : Buffer.concat([...parts, block.subarray(kept)]);
}

interface Cursor {
  readonly block: Buffer;
  at: number;
  isBroken: boolean;
}
interface Text {
  readonly isHuffman: boolean;
  readonly bytes: Buffer;
}
const isName = ({ isHuffman, bytes }: Text): boolean =>
  isHuffman ? bytes.equals(HUFFMAN_NAME) : bytes.toString("latin1") === NAME;

/** RFC 7541, 5.1: an integer that begins in the last `bits` of a byte. */
function integer(cursor: Cursor, bits: number): number {
  const most = 2 ** bits - 1;
  let value = (cursor.block[cursor.at++] ?? 0) & most;
  if (value < most) return value;
  for (let shift = 0; value < MOST_INTEGER; shift += 7) {
    const byte = cursor.block[cursor.at++];
    if (byte === undefined || shift > 28) break;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80 && value < MOST_INTEGER) return value;
  }
  cursor.isBroken = true;
  return 0;
}

/** RFC 7541, 5.2. */
function text(cursor: Cursor): Text {
  const isHuffman = ((cursor.block[cursor.at] ?? 0) & 0x80) !== 0;
  if (cursor.at >= cursor.block.length) cursor.isBroken = true;
  const length = integer(cursor, 7);
  const bytes = cursor.block.subarray(cursor.at, cursor.at + length);
  if (bytes.length < length) cursor.isBroken = true;
  cursor.at += length;
  return { isHuffman, bytes };
}
