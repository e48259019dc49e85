import { quote } from "./strconv.ts";

/** A text of bytes in double quotes: what is no UTF-8 goes by its bytes. Go: strconv.Quote. */
export function quoteBytes(bytes: string): string {
  const raw = Uint8Array.from(bytes, (c) => c.charCodeAt(0));
  try {
    return quote(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw));
  } catch {
    return `"${bytes.split(CHARACTER).map(part).join("")}"`;
  }
}
/** Whole characters beyond ASCII, and single bytes that belong to none. */
const CHARACTER = /([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff])/;
function part(bytes: string, i: number): string {
  if (i % 2 === 0) return quote(bytes).slice(1, -1);
  if (bytes.length > 1) return quoteBytes(bytes).slice(1, -1);
  return `\\x${bytes.charCodeAt(0).toString(16)}`;
}
