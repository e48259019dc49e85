/**
 * Parts of a URL as Go escapes them. A text is a text of bytes here (each character is one byte of its UTF-8), so that
 * what is escaped and what is not may stand side by side. Go 1.26: net/url.
 */
export type UrlPart = keyof typeof PLAIN;

const ALWAYS = "A-Za-z0-9\\-_.~";
/** What stands as it is in each part. */
const PLAIN = {
  path: byteSet("$&+,/:;=@"),
  fragment: byteSet("$&+,/:;=?@!()*"),
  user: byteSet("$&+,;="),
  host: byteSet("!\"$&'()*+,:;<=>\\[\\]"),
  /** More is let through in a part that was escaped by somebody else. */
  given: byteSet("$&+,/:;=@!'()*%\\[\\]"),
  givenFragment: byteSet("$&+,/:;=?@!'()*%\\[\\]"),
} as const;
function byteSet(more: string): RegExp {
  return new RegExp(`^[${ALWAYS}${more}]*$`);
}

/** UTF-8, a character a byte. */
export function bytesOf(text: string): string {
  if (isAscii(text)) return text;
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return bytes;
}
export const textOf = (bytes: string): string =>
  isAscii(bytes) ? bytes : new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text);

export const isPlain = (bytes: string, part: UrlPart): boolean => PLAIN[part].test(bytes);

/** Go: url.escape. */
export function escapeBytes(bytes: string, part: UrlPart): string {
  if (isPlain(bytes, part)) return bytes;
  return Array.from(bytes, (c) => (isPlain(c, part) ? c : `%${hex(c)}`)).join("");
}
const hex = (c: string): string => c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");

/** The escape that is wrong, of three characters at most; undefined: all are right. */
export function wrongEscape(bytes: string): string | undefined {
  const at = bytes.search(/%(?![0-9A-Fa-f]{2})/);
  return at < 0 ? undefined : bytes.slice(at, at + 3);
}
/** Of a text without wrong escapes. */
export const unescapeBytes = (bytes: string): string =>
  bytes.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));

/** As Go escapes a path, unless somebody did so in another way that is right too. Go: URL.EscapedPath. */
export function escapedAnew(bytes: string, part: "path" | "fragment"): string {
  const given = part === "path" ? "given" : "givenFragment";
  return isPlain(bytes, given) ? bytes : escapeBytes(unescapeBytes(bytes), part);
}
