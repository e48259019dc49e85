import { err, ok, type Result } from "../../model/result.ts";

const TRUE = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const FALSE = new Set(["0", "f", "F", "FALSE", "false", "False"]);
const MOST_UINT64 = 2n ** 64n - 1n;
const MOST_INT64 = 2n ** 63n - 1n;

/** A truth value as Go reads it; the error is Go's text. Go: strconv.ParseBool. */
export function parseBool(text: string): Result<boolean, string> {
  if (TRUE.has(text)) return ok(true);
  return FALSE.has(text) ? ok(false) : err(fault("ParseBool", text, "invalid syntax"));
}

/** A decimal 64-bit integer as Go reads it; the error is Go's text. Go: strconv.Atoi. */
export function parseWhole(text: string): Result<bigint, string> {
  const digits = /^[+-]?(\d*)/.exec(text) as RegExpExecArray;
  const size = BigInt(digits[1] as string);
  // Go reads from the left: what is too large is said before what is no digit
  if (size > MOST_UINT64) return err(fault("Atoi", text, "value out of range"));
  if (digits[1] === "" || digits[0].length < text.length) return err(fault("Atoi", text, "invalid syntax"));
  const negative = text.startsWith("-");
  if (size > MOST_INT64 + (negative ? 1n : 0n)) return err(fault("Atoi", text, "value out of range"));
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
const PRINTED = /^[ \p{L}\p{M}\p{N}\p{P}\p{S}]$/u;

/** A text in double quotes with Go's escapes: what `%q` prints. Go: strconv.Quote. */
export function quote(text: string): string {
  return `"${Array.from(text, escaped).join("")}"`;
}
function escaped(char: string): string {
  const short = SHORT.get(char);
  if (short !== undefined) return short;
  if (PRINTED.test(char)) return char;
  const code = char.codePointAt(0) as number;
  if (code < 0x20 || code === 0x7f) return `\\x${hex(code, 2)}`;
  // half of a surrogate pair is no character of a Go text
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
}
const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0");
