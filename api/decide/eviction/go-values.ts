import { type Duration, parseDuration } from "../../model/duration.ts";
import { parseQuantity, type Quantity } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { quote } from "../go/strconv.ts";

/** Values of the eviction settings as Go reads them; every error is Go's own text, which the kubelet passes on. */

const FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_WRONG = "unable to parse quantity's suffix";
const QUANTITY_FORM = /^[+-]?\d*(?:\.\d*)?[eEinumkKMGTP]*(?:[-+]\d*|\d+)?$/;

/** Go: resource.ParseQuantity. An amount whose thousandths leave int64 is refused in this project's own words: Go overflows. */
export function goQuantity(text: string): Result<Quantity, string> {
  const parsed = parseQuantity(text);
  if (parsed.ok) return parsed;
  if (parsed.error.code === "out_of_range") return err(parsed.error.message);
  return err(text !== "" && QUANTITY_FORM.test(text) ? SUFFIX_WRONG : FORMAT_WRONG);
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;
const MAX_FLOAT32 = 3.4028234663852886e38;
const parsing = (text: string, what: string): Result<never, string> =>
  err(`strconv.ParseFloat: parsing ${quote(text)}: ${what}`);

/** A float32 hundredth of the number before the `%`. Go: parsePercentage of the kubelet; NaN and hexadecimal are refused. */
export function goPercentage(text: string): Result<number, string> {
  const number = text.replace(/%+$/, "");
  const infinite = INFINITE.exec(number);
  if (infinite !== null) return ok(infinite[1] === "-" ? -Infinity : Infinity);
  if (!NUMBER.test(number)) return parsing(number, "invalid syntax");
  const value = Math.fround(Number(number));
  if (Math.abs(value) > MAX_FLOAT32) return parsing(number, "value out of range");
  return ok(Math.fround(value / 100));
}

/** Go: time.ParseDuration. */
export function goDuration(text: string): Result<Duration, string> {
  const parsed = parseDuration(text);
  return parsed.ok ? parsed : err(durationFault(text));
}
const UNITS: ReadonlySet<string> = new Set(["ns", "us", "µs", "μs", "ms", "s", "m", "h"]);

/** Go reads from the left, a number and its unit at a time, and names what it stumbles over. */
function durationFault(text: string): string {
  const invalid = `time: invalid duration ${quoted(text)}`;
  let rest = text.replace(/^[+-]/, "");
  while (rest !== "") {
    const number = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(rest)?.[0];
    if (number === undefined) return invalid;
    const unit = /^[^.\d]*/.exec(rest.slice(number.length))?.[0] ?? "";
    if (unit === "") return `time: missing unit in duration ${quoted(text)}`;
    if (!UNITS.has(unit)) return `time: unknown unit ${quoted(unit)} in duration ${quoted(text)}`;
    rest = rest.slice(number.length + unit.length);
  }
  return invalid;
}

/** Printable ASCII as it is, all else by its bytes. Go: quote of package time. */
function quoted(text: string): string {
  const bytes = [...text].map((char) =>
    char >= " " && char < "\x80" ? char.replace(/["\\]/, "\\$&") : [...utf8(char)].map(hexByte).join(""),
  );
  return `"${bytes.join("")}"`;
}
const hexByte = (byte: number): string => `\\x${byte.toString(16).padStart(2, "0")}`;
const utf8 = (char: string): Uint8Array => new TextEncoder().encode(char);
