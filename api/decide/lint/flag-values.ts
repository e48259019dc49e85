import { err, ok, type Result } from "../../base/result.ts";
import type { FlagSpec } from "../../profiles/profile.ts";
import { goDuration, goQuantity } from "../eviction/threshold.ts";
import { parseBool, parseWhole, quote } from "../go/strconv.ts";
import { isIPv6 } from "../go/url.ts";

/**
 * The value of a flag, in the form of its KubeletConfiguration field. `before`: the value of the same flag earlier on
 * the command line, to which lists and maps add; undefined: none. The error is Go's text. kubelet 1.37: the
 * pflag.Value of each type.
 */
export function flagValue({ type, field }: FlagSpec, text: string, before: unknown): Result<unknown, string> {
  switch (type.replace("*", "")) {
    case "bool":
      return parseBool(text);
    case "int32":
      return goInteger(text, 31n);
    case "int64":
      return goInteger(text, 63n);
    case "v1.VerbosityLevel":
      return verbosity(text);
    case "v1.Duration":
    case "v1.TimeOrMetaDuration":
      return as(text, goDuration(text));
    case "resource.QuantityValue":
      return as(text, goQuantity(text));
    case "string":
      return field !== null && ADDRESSES.has(field) ? address(text) : ok(text);
    case "[]string":
      return commaSeparated(text, (before ?? []) as readonly string[]);
    case "map[string]string":
      return textMap(field ?? "", text, before);
    case "map[string]bool":
      return merged(before, pairsOf(text, "=", "bool"), ([name, value]) => {
        const read = parseBool(value);
        return read.ok ? read : err(`invalid value of ${name}: ${value}, err: ${read.error}`);
      });
    case "map[string][]string":
      return merged(before, pairsOf(text, ":", "string"), ([, value], known) =>
        ok([...((known ?? []) as readonly string[]), value]),
      );
    case "[]v1.VModuleItem":
      return each(commas(text), moduleVerbosity, before);
    case "[]v1.Taint":
      return each(text === "" ? [] : text.split(","), taint, undefined);
    case "[]v1beta1.MemoryReservation":
      return each(text === "" ? [] : text.split(";"), memoryReservation, before);
    case "labels":
      return ok({ ...(before ?? {}), ...Object.fromEntries(commas(text).map((part) => part.split("=", 2))) });
    case "flag.bool":
      return orParseError(text, parseBool(text));
    case "flag.int":
      return orParseError(text, goInteger(text, 63n));
    case "flag.duration":
      return orParseError(text, goDuration(text));
    default:
      return ok(text);
  }
}

const as = (text: string, read: Result<unknown, string>): Result<string, string> => (read.ok ? ok(text) : read);
/**
 * Replaces the error, unless it is about the range: Go's package flag, from which cAdvisor's flags come, does not
 * report the reason.
 */
const orParseError = (text: string, read: Result<unknown, string>): Result<string, string> =>
  read.ok ? ok(text) : err(read.error.endsWith("value out of range") ? "value out of range" : "parse error");

const INTEGER = /^[+-]?(?:0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|[1-9](?:_?\d)*|0)$/;

/** Go: strconv.ParseInt with base 0, of `bits` and a sign. */
function goInteger(text: string, bits: bigint): Result<number, string> {
  const fault = (what: string): Result<never, string> => err(`strconv.ParseInt: parsing ${quote(text)}: ${what}`);
  if (!INTEGER.test(text)) return fault("invalid syntax");
  const digits = text.replace(/^[+-]/, "").replaceAll("_", "");
  const size = BigInt(/^0\d/.test(digits) ? `0o${digits}` : digits);
  const value = text.startsWith("-") ? -size : size;
  return value < -(2n ** bits) || value >= 2n ** bits ? fault("value out of range") : ok(Number(value));
}

/** Go: strconv.ParseUint of 31 bits. */
function verbosity(text: string): Result<number, string> {
  const fault = (what: string): Result<never, string> => err(`strconv.ParseUint: parsing ${quote(text)}: ${what}`);
  if (!/^\d+$/.test(text)) return fault("invalid syntax");
  return BigInt(text) >= 2n ** 31n ? fault("value out of range") : ok(Number(text));
}

const ADDRESSES: ReadonlySet<string> = new Set(["address", "healthzBindAddress"]);

/** Go: netutils.ParseIPSloppy. */
function address(text: string): Result<string, string> {
  const isIPv4 = /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) && text.split(".").every((part) => Number(part) < 256);
  return isIPv4 || isIPv6(text) ? ok(text) : err(`${quote(text)} is not a valid IP address`);
}

/** A line of CSV. Go: stringSliceValue of pflag. */
function commaSeparated(text: string, before: readonly string[]): Result<readonly string[], string> {
  if (text === "") return ok(before);
  const cell = /(?:"((?:[^"]|"")*)"|([^",]*))(?:,|$)/y;
  const found: string[] = [];
  for (;;) {
    const from = cell.lastIndex;
    const match = cell.exec(text);
    if (match === null) return err(`parse error on line 1, column ${quoteFault(text, from)}`);
    found.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (!match[0].endsWith(",")) return ok([...before, ...found]);
  }
}
const quoteFault = (text: string, from: number): string =>
  text[from] === '"'
    ? `${text.length + 1}: extraneous or missing " in quoted-field`
    : `${text.indexOf('"', from) + 1}: bare " in non-quoted field`;

const commas = (text: string): readonly string[] => text.split(",").filter((part) => part !== "");

type Pair = readonly [name: string, value: string];
/** Go: SplitN and TrimSpace of the map types of component-base's cli/flag. */
function pairOf(text: string, separator: string, kind: string): Result<Pair, string> {
  const at = text.indexOf(separator);
  if (at === -1) return err(`malformed pair, expect string${separator}${kind}`);
  return ok([text.slice(0, at).trim(), text.slice(at + 1).trim()]);
}
const pairsOf = (text: string, separator: string, kind: string): readonly Result<Pair, string>[] =>
  commas(text).map((part) => pairOf(part, separator, kind));

function merged(
  before: unknown,
  pairs: readonly Result<Pair, string>[],
  read: (pair: Pair, known: unknown) => Result<unknown, string>,
): Result<unknown, string> {
  const map = new Map(Object.entries((before ?? {}) as object));
  for (const pair of pairs) {
    if (!pair.ok) return pair;
    const [name] = pair.value;
    const value = read(pair.value, map.get(name));
    if (!value.ok) return value;
    map.set(name, value.value);
  }
  return ok(Object.fromEntries(map));
}

function textMap(field: string, text: string, before: unknown): Result<unknown, string> {
  // values of this option may contain commas
  if (field === "cpuManagerPolicyOptions")
    return merged(before, [pairOf(text, "=", "string")], ([, value]) => ok(value));
  const separator = field === "evictionHard" || field === "evictionSoft" ? "<" : "=";
  return merged(before, pairsOf(text, separator, "string"), ([, value]) => ok(value));
}

function each(
  parts: readonly string[],
  read: (part: string) => Result<unknown, string>,
  before: unknown,
): Result<unknown, string> {
  const found: unknown[] = [];
  for (const part of parts) {
    const value = read(part);
    if (!value.ok) return value;
    found.push(value.value);
  }
  return ok([...((before ?? []) as readonly unknown[]), ...found]);
}

function moduleVerbosity(text: string): Result<unknown, string> {
  const [filePattern = "", level = "", ...more] = text.split("=");
  if (filePattern === "" || level === "" || more.length > 0)
    return err(`${quote(text)} does not have the pattern=N format`);
  const read = verbosity(level);
  return read.ok
    ? ok({ filePattern, verbosity: read.value })
    : err(`parsing verbosity in ${quote(text)}: ${read.error}`);
}

const NAME = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const NOT_A_NAME =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const EFFECTS: ReadonlySet<string> = new Set(["NoSchedule", "PreferNoSchedule", "NoExecute"]);

/** Parses a taint. Go: ParseTaints; the form of key and value is checked with the field. */
function taint(text: string): Result<unknown, string> {
  const invalid = `invalid taint spec: ${text}`;
  const [named = "", effect, ...more] = text.split(":");
  if (effect === undefined) return err(NAME.test(named) ? invalid : `${invalid}, ${NOT_A_NAME}`);
  const [key, value, ...rest] = named.split("=");
  if (more.length > 0) return err(invalid);
  if (!EFFECTS.has(effect)) return err(`invalid taint effect: ${effect}, unsupported taint effect`);
  return rest.length > 0 ? err(invalid) : ok({ key, ...(value === undefined ? {} : { value }), effect });
}

/** Go: ReservedMemoryVar. */
function memoryReservation(text: string): Result<unknown, string> {
  const [node = "", list, ...more] = text.split(":");
  if (list === undefined || more.length > 0) {
    return err(
      `the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got ${text}`,
    );
  }
  const numaNode = parseWhole(node);
  if (!numaNode.ok) return err(`failed to convert the NUMA node ID, expected integer, got ${node}`);
  const limits: [string, string][] = [];
  for (const limit of list.split(",")) {
    const [name = "", quantity, ...rest] = limit.split("=");
    if (quantity === undefined || rest.length > 0) {
      return err(`the reserved limit has incorrect value, expected type=quantity, got ${limit}`);
    }
    if (name !== "memory" && !name.startsWith("hugepages-")) {
      return err(`memory type conversion error, unknown type: ${quote(name)}`);
    }
    if (!goQuantity(quantity).ok) return err(`failed to parse the quantity: ${quantity}`);
    limits.push([name, quantity]);
  }
  return ok({ numaNode: Number(numaNode.value), limits: Object.fromEntries(limits) });
}
