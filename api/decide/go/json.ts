import { err, ok, type Result } from "../../base/result.ts";
import { quote } from "./strconv.ts";

/** A JSON value as Go's decoder reads it: numbers as texts, members in order. */
export type GoJson =
  | { readonly kind: "null" | "bool" }
  | { readonly kind: "number" | "string"; readonly text: string }
  | { readonly kind: "array"; readonly items: GoJson[] }
  | { readonly kind: "object"; readonly members: (readonly [string, GoJson])[] };

/**
 * Parses a text; the error is Go's. Deep nesting uses memory, not the call stack. Go 1.26: encoding/json.Unmarshal,
 * its syntax.
 */
export function parseGoJson(text: string): Result<GoJson, string> {
  const reader: Reader = { text, at: 0, open: [], key: "", root: undefined, error: undefined };
  let next: Step | undefined = value;
  while (next !== undefined && reader.error === undefined) next = next(reader);
  return reader.error === undefined ? ok(reader.root as GoJson) : err(reader.error);
}

interface Reader {
  readonly text: string;
  at: number;
  /** The arrays and objects that are not closed yet. */
  readonly open: Extract<GoJson, { kind: "array" | "object" }>[];
  /** The name of the member whose value is next. */
  key: string;
  root: GoJson | undefined;
  /** The first error. */
  error: string | undefined;
}
/** Reads one token and returns the next step; undefined at the end. */
type Step = (reader: Reader) => Step | undefined;

const MAX_DEPTH = 10_000;
const SPACE_CODE = 32;
const CUT = "unexpected end of JSON input";
const SPACE = /[ \t\r\n]*/y;
const SPECIAL = /[\\\p{Cc}]/u;
const STRING_END = /[^"\\\p{Cc}]*/uy;

function skipSpace(reader: Reader): string | undefined {
  SPACE.lastIndex = reader.at;
  reader.at += (SPACE.exec(reader.text)?.[0] ?? "").length;
  return reader.text[reader.at];
}

/**
 * Records Go's error for an unexpected character or byte; at the end of the text, within a token, Go reports a space.
 */
function unexpected(reader: Reader, at: number, where: string): undefined {
  const byte = new TextEncoder().encode(String.fromCodePoint(reader.text.codePointAt(at) ?? SPACE_CODE))[0] as number;
  const shown = String.fromCharCode(byte);
  const quoted = shown === "'" ? "\\'" : shown === '"' ? '"' : quote(shown).slice(1, -1);
  reader.error ??= `invalid character '${quoted}' ${where}`;
}
function between(reader: Reader, where: string): undefined {
  if (reader.at >= reader.text.length) reader.error ??= CUT;
  else unexpected(reader, reader.at, where);
}

const value: Step = (reader) => {
  const c = skipSpace(reader);
  if (c === "{" || c === "[") return open(reader, c);
  if (c === '"') return put(reader, { kind: "string", text: readString(reader) });
  if (c === "-" || (c !== undefined && c >= "0" && c <= "9")) {
    return put(reader, { kind: "number", text: readNumber(reader) });
  }
  if (c === "t" || c === "f" || c === "n") {
    readWord(reader, c === "t" ? "true" : c === "f" ? "false" : "null");
    return put(reader, { kind: c === "n" ? "null" : "bool" });
  }
  return between(reader, "looking for beginning of value");
};

function open(reader: Reader, c: "{" | "["): Step {
  const node: GoJson = c === "{" ? { kind: "object", members: [] } : { kind: "array", items: [] };
  attach(reader, node);
  if (reader.open.push(node) > MAX_DEPTH) unexpected(reader, reader.at, "exceeded max depth");
  reader.at++;
  if (skipSpace(reader) === (c === "{" ? "}" : "]")) return close(reader);
  return c === "{" ? key : value;
}
function close(reader: Reader): Step {
  reader.at++;
  reader.open.pop();
  return after;
}
function put(reader: Reader, node: GoJson): Step {
  attach(reader, node);
  return after;
}
function attach(reader: Reader, node: GoJson): void {
  const parent = reader.open.at(-1);
  if (parent === undefined) reader.root = node;
  else if (parent.kind === "array") parent.items.push(node);
  else parent.members.push([reader.key, node]);
}

const key: Step = (reader) => {
  const c = skipSpace(reader);
  if (c !== '"') return between(reader, "looking for beginning of object key string");
  reader.key = readString(reader);
  const colon = skipSpace(reader);
  if (colon !== ":") return between(reader, "after object key");
  reader.at++;
  return value;
};

const after: Step = (reader) => {
  const c = skipSpace(reader);
  const parent = reader.open.at(-1);
  if (parent === undefined) return c === undefined ? undefined : unexpected(reader, reader.at, "after top-level value");
  const isObject = parent.kind === "object";
  if (c === (isObject ? "}" : "]")) return close(reader);
  if (c !== ",") return between(reader, isObject ? "after object key:value pair" : "after array element");
  reader.at++;
  return isObject ? key : value;
};

function readWord(reader: Reader, word: string): void {
  for (let i = 1; i < word.length; i++) {
    const c = reader.text[reader.at + i];
    if (c !== word[i]) unexpected(reader, reader.at + i, `in literal ${word} (expecting '${word[i]}')`);
  }
  reader.at += word.length;
}

const isDigit = (c: string | undefined): boolean => c !== undefined && c >= "0" && c <= "9";
function readNumber(reader: Reader): string {
  const { text, at: start } = reader;
  let at = start + (text[start] === "-" ? 1 : 0);
  const digits = (where: string): void => {
    if (!isDigit(text[at])) unexpected(reader, at, `${where}numeric literal`);
    while (isDigit(text[at])) at++;
  };
  if (text[at] === "0") at++;
  else digits("in ");
  if (text[at] === ".") {
    at++;
    digits("after decimal point in ");
  }
  if (text[at] === "e" || text[at] === "E") {
    at++;
    if (text[at] === "+" || text[at] === "-") at++;
    digits("in exponent of ");
  }
  reader.at = at;
  return text.slice(start, at);
}

/** Reads a string; an unpaired surrogate becomes U+FFFD, as in Go. */
function readString(reader: Reader): string {
  const { text, at: start } = reader;
  const plain = text.slice(start + 1, Math.max(start, text.indexOf('"', start + 1)));
  if (plain !== "" && !SPECIAL.test(plain)) {
    reader.at += plain.length + 2;
    return plain.toWellFormed();
  }
  let at = start + 1;
  while (text[at] !== '"' && reader.error === undefined) {
    STRING_END.lastIndex = at;
    at += (STRING_END.exec(text)?.[0] ?? "").length;
    const c = text[at];
    if (c === '"') break;
    if (c === undefined) reader.error ??= CUT;
    if (c === "\\") at = escapeEnd(reader, at + 1);
    else if ((c as string) < " ") unexpected(reader, at, "in string literal");
    else at++;
  }
  reader.at = at + 1;
  if (reader.error !== undefined) return "";
  return (JSON.parse(text.slice(start, at + 1)) as string).toWellFormed();
}
function escapeEnd(reader: Reader, at: number): number {
  const { text } = reader;
  if (!/^["\\/bfnrtu]$/.test(text[at] ?? "")) unexpected(reader, at, "in string escape code");
  if (text[at] !== "u") return at + 1;
  for (let i = at + 1; i < at + 5; i++) {
    if (!/^[0-9a-fA-F]$/.test(text[i] ?? "")) unexpected(reader, i, "in \\u hexadecimal character escape");
  }
  return at + 5;
}

/** Printable ASCII without what is escaped. */
const PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;
/** Quotes a text as Go's encoding/json does, which also escapes `<`, `>`, `&` and two line separators. */
export function jsonText(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  const escaped = (c: string): string => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text.toWellFormed()).replace(/[<>&\u2028\u2029]/g, escaped);
}
