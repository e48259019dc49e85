import { faultOf } from "../base/json-fault.ts";
import { ok, type Result } from "../base/result.ts";
import { type Problem, problem } from "./problem.ts";

/** The deepest nesting that is read; Kubernetes prints nothing near it. */
export const MAX_DEPTH = 128;
/**
 * The size in bytes above which depth and number of values are checked before parsing: millions of brackets take seconds, and 100
 * bytes each.
 */
const SCAN_ABOVE = 128 * 1024;
/** The least bytes per value: Kubernetes prints at least 17, `[[],[],` has 1.5. Small bodies are not limited. */
const BYTES_PER_VALUE = 8;
const MAX_OF_SMALL = 256 * 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** JSON bytes -> value. Errors: not UTF-8, not JSON (with the position), nested deeper than `MAX_DEPTH`, too many values. */
export function parseJson(bytes: Uint8Array): Result<unknown, Problem> {
  const text = textOf(bytes);
  return text.ok ? parseText(text.value) : text;
}

/** JSON bytes -> text. Errors: not UTF-8, nested deeper than `MAX_DEPTH`, too many values. */
function textOf(bytes: Uint8Array): Result<string, Problem> {
  if (bytes.length > SCAN_ABOVE) {
    const most = Math.max(MAX_OF_SMALL, Math.floor(bytes.length / BYTES_PER_VALUE));
    const scanned = scan(bytes, most);
    if (scanned === "deep") return tooDeep();
    if (scanned === "many") return problem("body_too_large", `the body has more than ${most} JSON values`);
  }
  try {
    return ok(utf8.decode(bytes));
  } catch {
    return problem("malformed_json", "the body is not UTF-8", { advice: "send JSON in UTF-8" });
  }
}

function parseText(text: string): Result<unknown, Problem> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return problem("malformed_json", faultOf(text));
  }
  return text.length <= SCAN_ABOVE && isDeep(value, MAX_DEPTH) ? tooDeep() : ok(value);
}

const tooDeep = (): Result<never, Problem> =>
  problem("malformed_json", `the body is nested deeper than ${MAX_DEPTH} levels`, {
    advice: "flatten it: no Kubernetes object nests so deep",
  });

/**
 * Whether objects and lists nest deeper than `left` levels. INVARIANT: the recursion goes no deeper, so that no input overflows
 * the stack.
 */
const isDeep = (value: unknown, left: number): boolean =>
  typeof value === "object" && value !== null && isDeeper(value, left);

function isDeeper(value: object, left: number): boolean {
  if (left === 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i] as unknown;
      if (typeof item === "object" && item !== null && isDeeper(item, left - 1)) return true;
    }
    return false;
  }
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === "object" && item !== null && isDeeper(item, left - 1)) return true;
  }
  return false;
}

/** Scans text before parsing: whether it nests too deep or has more than `most` values. */
function scan(bytes: Uint8Array, most: number): "deep" | "many" | null {
  let depth = 0;
  // each value but the first follows a comma or an opening bracket
  let values = 0;
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i] as number;
    if (c === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (c === 0x5b || c === 0x7b) {
      if (++depth > MAX_DEPTH) return "deep";
      if (++values > most) return "many";
    } else if (c === 0x2c) {
      if (++values > most) return "many";
    } else if (c === 0x5d || c === 0x7d) depth--;
  }
  return null;
}
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
