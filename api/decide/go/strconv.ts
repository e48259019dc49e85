import { err, ok, type Result } from "../../base/result.ts";

/** Quotes a string of bytes; invalid UTF-8 is written as escaped bytes. Go: strconv.Quote. */
export function quoteBytes(bytes: string): string {
  if (PLAIN.test(bytes)) return quote(bytes);
  const raw = Uint8Array.from(bytes, (c) => c.charCodeAt(0));
  try {
    return quote(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw));
  } catch {
    return `"${bytes.split(CHARACTER).map(part).join("")}"`;
  }
}
/** Matches whole characters beyond ASCII, and single bytes that belong to none. */
const CHARACTER = /([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff])/;
function part(bytes: string, i: number): string {
  if (i % 2 === 0) return quote(bytes).slice(1, -1);
  if (bytes.length > 1) return quoteBytes(bytes).slice(1, -1);
  return `\\x${bytes.charCodeAt(0).toString(16)}`;
}

const TRUE = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const FALSE = new Set(["0", "f", "F", "FALSE", "false", "False"]);
const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_INT64 = 2n ** 63n - 1n;

/** A truth value as Go reads it; the error is Go's text. Go: strconv.ParseBool. */
export function parseBool(text: string): Result<boolean, string> {
  if (TRUE.has(text)) return ok(true);
  return FALSE.has(text) ? ok(false) : err(fault("ParseBool", text, "invalid syntax"));
}

/** A decimal 64-bit integer as Go reads it; the error is Go's text. Go: strconv.Atoi. */
export function parseWhole(text: string): Result<bigint, string> {
  const digits = /^[+-]?(\d*)/.exec(text) as RegExpExecArray;
  const size = BigInt(digits[1] as string);
  // Go reads from the left: it reports a number that is too large before a later character that is no digit
  if (size > MAX_UINT64) return err(fault("Atoi", text, "value out of range"));
  if (digits[1] === "" || digits[0].length < text.length) return err(fault("Atoi", text, "invalid syntax"));
  const negative = text.startsWith("-");
  if (size > MAX_INT64 + (negative ? 1n : 0n)) return err(fault("Atoi", text, "value out of range"));
  return ok(negative ? -size : size);
}
const fault = (name: string, text: string, what: string): string => `strconv.${name}: parsing ${quote(text)}: ${what}`;

const SHORT: ReadonlyMap<string, string> = new Map([
  ["\x07", "\\a"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\v", "\\v"],
  ["\\", "\\\\"],
  ['"', '\\"'],
]);
/** Printable ASCII, except the quote and the backslash. */
const PLAIN = /^[ !#-[\]-~]*$/;
const PRINTED = /^[ \p{L}\p{M}\p{N}\p{P}\p{S}]$/u;

/** A text in double quotes with Go's escapes: what `%q` prints. Go: strconv.Quote. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : `"${Array.from(text, escaped).join("")}"`;
}
function escaped(char: string): string {
  const short = SHORT.get(char);
  if (short !== undefined) return short;
  if (PRINTED.test(char)) return char;
  const code = char.codePointAt(0) as number;
  if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
  // an unpaired surrogate is no character of a Go text
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
}
const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");

/** Whole nanoseconds as Go prints a duration: `1h0m0s`, `1.5s`, `150ms`. Go: time.Duration.String. */
export function goDurationText(nanos: bigint): string {
  const sign = nanos < 0n ? "-" : "";
  const n = nanos < 0n ? -nanos : nanos;
  if (n === 0n) return "0s";
  if (n < 1_000n) return `${sign}${n}ns`;
  if (n < 1_000_000n) return `${sign}${decimal(n, 3)}µs`;
  if (n < 1_000_000_000n) return `${sign}${decimal(n, 6)}ms`;
  const minutes = n / 60_000_000_000n;
  const seconds = `${decimal(n % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  return minutes < 60n ? `${sign}${minutes}m${seconds}` : `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}
/** `n` as a decimal with `places` digits after the point, without trailing zeros. */
function decimal(n: bigint, places: number): string {
  const digits = String(n).padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  return fraction === "" ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`;
}
