import type { ScalarTag } from "yaml";

/**
 * What an unquoted scalar stands for, by the rules that Kubernetes reads YAML by, which are neither those of YAML 1.1 nor of
 * 1.2: `yes` is true, `0644` and `0o644` are octal, `1_000` is 1000, `08` is 8, and `e1`, `.`, `12:30` are text.
 * sigs.k8s.io/yaml 1.6 (go.yaml.in/yaml/v2): resolve. `.inf` and `.nan` are the numbers that JSON does not have.
 */
export function plainScalar(text: string): string | number | boolean | null {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  const number = intOf(text) ?? floatOf(text);
  return number ?? text;
}

const WORDS: ReadonlyMap<string, number | boolean | null> = new Map<string, number | boolean | null>([
  ...["", "~", "null", "Null", "NULL"].map((text) => [text, null] as const),
  ...["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"].map((text) => [text, true] as const),
  ...["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"].map((text) => [text, false] as const),
  ...["", "+"].flatMap((sign) => [".inf", ".Inf", ".INF"].map((text) => [sign + text, Infinity] as const)),
  ...["-.inf", "-.Inf", "-.INF"].map((text) => [text, -Infinity] as const),
  ...[".nan", ".NaN", ".NAN"].map((text) => [text, Number.NaN] as const),
]);

const INT = /^([-+]?)(?:0[xX]([\da-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9]\d*))$/;
/** Go takes the digits after `0b` as a number of their own, with its sign. */
const SIGNED_BITS = /^0b([-+])([01]+)$/;
const LEAST = -(2n ** 63n);
const MOST = 2n ** 64n - 1n;

/** Of 64 bits, with `_` anywhere behind the first character; beyond them it is no integer. */
function intOf(text: string): number | null {
  if (!/^[-+\d]/.test(text)) return null;
  const plain = text.replaceAll("_", "");
  const [, bitsSign, bits] = SIGNED_BITS.exec(plain) ?? [];
  if (bits !== undefined) return inRange(bitsSign, `0b${bits}`);
  const [, sign, hex, binary, octal, decimal] = INT.exec(plain) ?? [];
  if (hex !== undefined) return inRange(sign, `0x${hex}`);
  if (binary !== undefined) return inRange(sign, `0b${binary}`);
  if (octal !== undefined) return inRange(sign, `0o${octal}`);
  return decimal === undefined ? null : inRange(sign, decimal);
}

function inRange(sign: string | undefined, digits: string): number | null {
  const value = sign === "-" ? -BigInt(digits) : BigInt(digits);
  return value < LEAST || value > MOST ? null : Number(value);
}

const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

/** Behind a leading point `_` may stand between digits only. */
const FRACTION = /^\.\d+(?:_\d+)*(?:[eE][-+]?\d+(?:_\d+)*)?$/;

/** With a digit before any exponent. What is too large for a double is text. */
function floatOf(text: string): number | null {
  const plain = text.replaceAll("_", "");
  const isFloat = text.startsWith(".") ? FRACTION.test(text) : /^[-+\d]/.test(text) && FLOAT.test(plain);
  const value = isFloat ? Number(plain) : Number.NaN;
  return Number.isFinite(value) ? value : null;
}

const isNumber = (value: unknown): boolean => typeof value === "number";
const isWhole = (text: string): boolean => typeof WORDS.get(text) !== "number" && intOf(text) !== null;
const tag = (name: string, test: (text: string) => boolean): ScalarTag => ({
  tag: `tag:yaml.org,2002:${name}`,
  default: true,
  // the library asks of a tag's pattern no more than this
  test: { test } as unknown as RegExp,
  resolve: plainScalar,
});

/** The tags that `plainScalar` makes of unquoted scalars, for the schema of a YAML parser. */
export const SCALAR_TAGS: readonly ScalarTag[] = [
  tag("null", (text) => plainScalar(text) === null),
  tag("bool", (text) => typeof plainScalar(text) === "boolean"),
  tag("int", isWhole),
  tag("float", (text) => isNumber(plainScalar(text))),
];
