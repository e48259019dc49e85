import {
  Composer,
  type CST,
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  type Scalar,
  type ScalarTag,
  type Tags,
  visit,
  type YAMLMap,
} from "yaml";
import { jsonFaultOf } from "../base/json-fault.ts";
import type { Position, ProblemCode, ReadProblem, SourceDocument } from "./problem.ts";

/** No Kubernetes object is nested this deep; code that walks the values may recurse. */
const MAX_DEPTH = 100;

/** Also true of a value that contains itself, as a YAML alias can make it. */
function depthExceeds(value: unknown, limit: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  return Object.values(value).some((inner) => depthExceeds(inner, limit - 1));
}

const tooDeep = (file: string, document: number): ReadProblem => ({
  code: "too-deep",
  file,
  document,
  message: `is nested more than ${MAX_DEPTH} levels deep: flatten it`,
});

/**
 * The value of an unquoted scalar, by the rules with which Kubernetes reads YAML, which are neither those of YAML 1.1 nor of 1.2:
 * `yes` is true, `0644` and `0o644` are octal, `1_000` is 1000, `08` is 8, and `e1`, `.`, `12:30` are text. sigs.k8s.io/yaml 1.6
 * (go.yaml.in/yaml/v2): resolve. `.inf` and `.nan` are the numbers that JSON does not have.
 */
function plainScalar(text: string): string | number | boolean | null {
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
/** Go parses the digits after `0b` as a number of their own, with a sign. */
const SIGNED_BITS = /^0b([-+])([01]+)$/;
const MIN_INT64 = -(2n ** 63n);
const MAX_UINT64 = 2n ** 64n - 1n;

/** A 64-bit integer, with `_` anywhere after the first character; null for a larger number. */
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
  return value < MIN_INT64 || value > MAX_UINT64 ? null : Number(value);
}

const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

/** After a leading point, `_` may appear between digits only. */
const FRACTION = /^\.\d+(?:_\d+)*(?:[eE][-+]?\d+(?:_\d+)*)?$/;

/** A number with a digit before any exponent. A number too large for a double is text. */
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
  // the library uses only `test` of a tag's pattern
  test: { test } as unknown as RegExp,
  resolve: plainScalar,
});

/** The tags for unquoted scalars as `plainScalar` reads them, for the schema of a YAML parser. */
const SCALAR_TAGS: readonly ScalarTag[] = [
  tag("null", (text) => plainScalar(text) === null),
  tag("bool", (text) => typeof plainScalar(text) === "boolean"),
  tag("int", isWhole),
  tag("float", (text) => isNumber(plainScalar(text))),
];

interface YamlSource {
  readonly document: Document;
  readonly lines: LineCounter;
}

/** The limits for one anchor, and for what its aliases expand to together. */
const MAX_EXPANSION = 100;
const MAX_ALIASES = 1000;
/** Kubernetes has its own rules for these (`SCALAR_TAGS`), reads them as text, or rejects them: sets and the like are not JSON. */
const FOREIGN_TAGS = ["null", "bool", "int", "float", "timestamp", "binary", "omap", "pairs", "set"].map(
  (name) => `tag:yaml.org,2002:${name}`,
);

/**
 * The documents of a text in the YAML that Kubernetes reads: 1.1 with its own scalars (`plainScalar`) and `<<` merges. Throws
 * RangeError at the first position that is nested too deep, before any recursion over it.
 */
function parseYaml(text: string): readonly YamlSource[] {
  const lines = new LineCounter();
  const composer = new Composer({
    version: "1.1",
    schema: "yaml-1.1",
    merge: true,
    customTags: kubernetesTags,
    resolveKnownTags: false,
    uniqueKeys: false, // the parser's check is quadratic; `faultOfTree` finds duplicate keys
    lineCounter: lines,
    prettyErrors: false,
    logLevel: "silent",
  });
  return Array.from(composer.compose(tokens(text, lines)), (document) => ({ document, lines }));
}

/** `Parser.parse` with a check of its stack, which has a token for each open collection and one for the document. */
function* tokens(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_DEPTH + 2) throw new RangeError("nested too deep");
  }
  yield* parser.end();
}

const kubernetesTags = (tags: Tags): Tags => [
  ...tags.filter((tag) => typeof tag === "object" && !FOREIGN_TAGS.includes(tag.tag)),
  ...SCALAR_TAGS,
];

/** The document as plain values; `value` is null for an empty one. */
function readYaml(source: YamlSource, file: string, index: number): SourceDocument | ReadProblem {
  const { document, lines } = source;
  const at = placeFinder(document, lines);
  const problem = (code: ProblemCode, message: string, place: Position = at([])): ReadProblem => ({
    code,
    file,
    document: index,
    place,
    message,
  });
  const [syntax] = document.errors;
  if (syntax?.code === "RESOURCE_EXHAUSTION") return tooDeep(file, index);
  if (syntax !== undefined) return problem("malformed", worded(syntax), placeOf(lines, syntax.pos[0]));
  try {
    const fault = faultOfTree(document);
    if (fault !== undefined) return problem(fault.code, fault.message, placeOf(lines, fault.offset));
    const value = document.toJS({ maxAliasCount: MAX_EXPANSION }) as unknown;
    return depthExceeds(value, MAX_DEPTH) ? tooDeep(file, index) : { value, file, document: index, place: at };
  } catch (error) {
    if (error instanceof RangeError) return tooDeep(file, index);
    if (!(error instanceof Error)) throw error;
    return /^Excessive alias/.test(error.message) ? problem("alias-bomb", BOMB) : problem("malformed", worded(error));
  }
}

const BOMB = `expands one anchor more than ${MAX_EXPANSION} times: write the values out`;
const worded = (fault: Error): string => {
  const [first = ""] = fault.message.split("\n");
  return `is not YAML or JSON: ${first.charAt(0).toLowerCase()}${first.slice(1)}`;
};

interface TreeFault {
  readonly code: ProblemCode;
  readonly offset: number;
  readonly message: string;
}

/**
 * Duplicate keys, of which the last would silently win, numbers that JSON does not have, and more aliases than can be resolved in
 * reasonable time.
 */
function faultOfTree(document: Document): TreeFault | undefined {
  let aliases = 0;
  let fault: TreeFault | undefined;
  visit(document, {
    Scalar: (key, scalar) => {
      if (key === "key") return undefined;
      fault = notInJson(scalar);
      return fault === undefined ? undefined : visit.BREAK;
    },
    Alias: (_, alias) => {
      aliases++;
      if (aliases <= MAX_ALIASES) return undefined;
      fault = {
        code: "alias-bomb",
        offset: alias.range?.[0] ?? 0,
        message: `uses more than ${MAX_ALIASES} aliases: write the values out`,
      };
      return visit.BREAK;
    },
    Map: (_, map) => {
      fault = duplicateKey(map);
      return fault === undefined ? undefined : visit.BREAK;
    },
  });
  return fault;
}

function notInJson({ value, source, range }: Scalar): TreeFault | undefined {
  if (typeof value !== "number" || Number.isFinite(value)) return undefined;
  const message = `\`${source ?? value}\` is a number that no JSON holds, so Kubernetes refuses it: put it in quotes, or give a number`;
  return { code: "malformed", offset: range?.[0] ?? 0, message };
}

const duplicateKeyText = (key: string): string => `has the key \`${key.slice(0, 60)}\` twice: keep one`;

function duplicateKey(map: YAMLMap): TreeFault | undefined {
  const seen = new Set<unknown>();
  for (const { key } of map.items) {
    if (!isScalar(key) || key.value === "<<") continue;
    if (seen.has(key.value)) {
      return {
        code: "malformed",
        offset: key.range?.[0] ?? 0,
        message: duplicateKeyText(String(key.value)),
      };
    }
    seen.add(key.value);
  }
  return undefined;
}

function placeOf(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** Finds the position of the value at a path of keys and indices, or of the last existing node on the path. */
function placeFinder(document: Document, lines: LineCounter): (path: readonly (string | number)[]) => Position {
  return (path) => {
    let node: Node | null = document.contents;
    for (const step of path) {
      const inner = childOf(node, step);
      if (inner === undefined) break;
      node = inner;
    }
    return placeOf(lines, node?.range?.[0] ?? document.range?.[0] ?? 0);
  };
}

function childOf(node: Node | null, step: string | number): Node | undefined {
  let child: unknown;
  if (isSeq(node)) child = node.items[Number(step)];
  if (isMap(node)) child = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))?.value;
  return isNode(child) ? child : undefined;
}

interface Parsed {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly ReadProblem[];
}

/**
 * Reads JSON or YAML with any number of documents, as Kubernetes does; JSON documents may follow one another, as several commands
 * or `kubectl get --watch -o json` print them. A bad document is a problem (malformed, alias-bomb, too-deep) with its position,
 * and does not hide the others. Empty documents are skipped. A text that is neither and looks like JSON gets JSON's error message.
 */
export function parseDocuments(text: string, file: string): Parsed {
  const json = parseJson(text);
  if (json !== undefined) {
    const read = json.map((one, i) => readJson(one, file, i));
    return {
      documents: read.flatMap((one) => ("code" in one ? [] : [one])),
      problems: read.flatMap((one) => ("code" in one ? [one] : [])),
    };
  }
  const documents: SourceDocument[] = [];
  const problems: ReadProblem[] = [];
  for (const [i, source] of sourcesOf(text).entries()) {
    const read = source === undefined ? tooDeep(file, i) : readYaml(source, file, i);
    if ("code" in read) problems.push(read);
    else if (read.value !== null) documents.push(read);
  }
  if (problems.some(({ code }) => code === "malformed") && looksLikeJson(text, file))
    return { documents: [], problems: [jsonProblem(text, file)] };
  return { documents, problems };
}

/** By its name, or its first characters, which usual YAML does not begin with; only YAML has `---`. */
const looksLikeJson = (text: string, file: string): boolean =>
  (file.endsWith(".json") || /^\s*(?:\{\s*["}]|\[\s*["[{\]\d-]|[{[]\s*$)/.test(text)) && !/^---/m.test(text);

function jsonProblem(text: string, file: string): ReadProblem {
  const { line, column, message } = jsonFaultOf(text);
  return { code: "malformed", file, document: 0, place: { line, column }, message: `is not JSON: ${message}` };
}

/** `undefined` for a text that is nested too deep. */
function sourcesOf(text: string): readonly (YamlSource | undefined)[] {
  try {
    return parseYaml(text);
  } catch (error) {
    if (error instanceof RangeError) return [undefined];
    throw error;
  }
}

interface Json {
  readonly value: unknown;
  readonly text: string;
  /** Its start. */
  readonly from: Position;
}

/** Parses JSON without the YAML parser, which is slower but reports the position of a fault; undefined if the text is no JSON. */
function parseJson(text: string): readonly Json[] | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return [{ value: JSON.parse(text) as unknown, text, from: { line: 1, column: 1 } }];
  } catch {
    return jsonPieces(text);
  }
}

/** Consecutive objects and lists; undefined if there is anything else, or only one. */
function jsonPieces(text: string): readonly Json[] | undefined {
  const pieces: Json[] = [];
  let [start, depth, line, lineStart] = [0, 0, 1, 0];
  let from: Position = { line: 1, column: 1 };
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "\n") [line, lineStart] = [line + 1, at + 1];
    else if (character === '"') at = endOfText(text, at) - 1;
    else if (character === "{" || character === "[") {
      if (depth === 0) [start, from] = [at, { line, column: at - lineStart + 1 }];
      depth++;
    } else if (character === "}" || character === "]") {
      depth--;
      if (depth < 0) return undefined;
      if (depth > 0) continue;
      const piece = text.slice(start, at + 1);
      try {
        pieces.push({ value: JSON.parse(piece) as unknown, text: piece, from });
      } catch {
        return undefined;
      }
    } else if (depth === 0 && !/\s/.test(character ?? "")) return undefined;
  }
  return depth === 0 && pieces.length > 1 ? pieces : undefined;
}

const moved = ({ line, column }: Position, { line: first, column: indent }: Position): Position => ({
  line: line + first - 1,
  column: line === 1 ? column + indent - 1 : column,
});

function readJson({ value, text, from }: Json, file: string, document: number): SourceDocument | ReadProblem {
  if (depthExceeds(value, MAX_DEPTH)) return tooDeep(file, document);
  const twin = jsonTwinOf(text);
  if (twin !== null) {
    const place = moved(twin.place, from);
    return { code: "malformed", file, document, place, message: duplicateKeyText(twin.key) };
  }
  let parsed: SourceDocument | ReadProblem | undefined;
  return {
    value,
    file,
    document,
    place: (path) => {
      const [source] = parsed === undefined ? sourcesOf(text) : [];
      parsed ??= source === undefined ? tooDeep(file, document) : readYaml(source, file, document);
      return "code" in parsed ? from : moved(parsed.place(path), from);
    },
  };
}

interface JsonTwin {
  readonly key: string;
  /** The place of the second key. */
  readonly place: Position;
}

/** The first duplicate key within an object of a JSON text, of which `JSON.parse` takes the last; null if there is none. */
function jsonTwinOf(text: string): JsonTwin | null {
  /** The keys of each open object; null for a list. */
  const open: (Set<string> | null)[] = [];
  let keys: Set<string> | null = null;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "{") open.push(new Set());
    else if (character === "[") open.push(null);
    else if (character === "}" || character === "]") open.pop();
    // a key may follow these
    if (character === "{" || character === ",") keys = open.at(-1) ?? null;
    if (character !== '"') continue;
    const end = endOfText(text, at);
    if (keys !== null) {
      const key = JSON.parse(text.slice(at, end)) as string;
      if (keys.has(key)) return { key, place: placeAt(text, at) };
      keys.add(key);
      keys = null;
    }
    at = end - 1;
  }
  return null;
}

function endOfText(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function placeAt(text: string, at: number): Position {
  const lines = text.slice(0, at).split("\n");
  return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}
