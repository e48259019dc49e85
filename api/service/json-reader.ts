import { Lru } from "../model/cache.ts";
import { ok, type Result } from "../model/result.ts";
import { isDeep, MAX_DEPTH, parseJson, parseText, textOf } from "./json.ts";
import type { Problem } from "./problem.ts";

/** A value of a JSON text, with the text or the smaller pieces that it was read from. */
export type Piece = Leaf | Branch;
interface Leaf {
  readonly text: string;
  readonly value: unknown;
}
interface Branch {
  readonly isList: boolean;
  /** As spelled, quotes included; empty of a list. */
  readonly names: readonly string[];
  readonly pieces: readonly Piece[];
  readonly value: object;
}

/** A posted snapshot's members are told apart, and the pods in its list. */
const BRANCH_DEPTH = 4;

/**
 * Reads a JSON text beside an earlier one: what is spelled as it was at the same place is the very value that it was then,
 * and is not parsed again. The value is what `JSON.parse` makes of the text. Null: it must be asked, since the text is no
 * JSON, nests deeper than `MAX_DEPTH`, or has a member twice or one named `__proto__`.
 */
export function readPieces(text: string, last: Piece | null): Piece | null {
  try {
    return new Reader(text).whole(last);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(last: Piece | null): Piece {
    const piece = this.#piece(last ?? undefined, 0);
    if (!Number.isNaN(this.#next())) throw new SyntaxError("more than one value");
    return piece;
  }

  #piece(last: Piece | undefined, depth: number): Piece {
    const c = this.#next();
    if (depth < BRANCH_DEPTH && (c === BRACE || c === BRACKET)) {
      return this.#branch(last !== undefined && "pieces" in last ? last : undefined, depth, c === BRACKET);
    }
    return this.#leaf(last !== undefined && "text" in last ? last : undefined, depth);
  }

  #leaf(last: Leaf | undefined, depth: number): Leaf {
    if (last !== undefined && this.#goesOnWith(last.text) && isAfterValue(this.#code(last.text.length))) {
      this.#at += last.text.length;
      return last;
    }
    const end = valueEnd(this.#text, this.#at);
    const text = apart(this.#text.slice(this.#at, end));
    const value: unknown = JSON.parse(text);
    if (isDeep(value, MAX_DEPTH - depth)) throw new SyntaxError("nested too deep");
    this.#at = end;
    return { text, value };
  }

  #branch(last: Branch | undefined, depth: number, isList: boolean): Branch {
    const close = isList ? BRACKET_END : BRACE_END;
    const names: string[] = [];
    const pieces: Piece[] = [];
    this.#at++;
    if (this.#next() === close) this.#at++;
    else {
      for (let c = COMMA; c === COMMA; c = this.#after(close)) {
        if (!isList) names.push(this.#name(last?.names[names.length]));
        pieces.push(this.#piece(last?.pieces[pieces.length], depth + 1));
      }
    }
    const isAsBefore = last?.isList === isList && areSame(last.pieces, pieces) && areSame(last.names, names);
    if (isAsBefore) return last;
    const values = pieces.map(({ value }) => value);
    return { isList, names, pieces, value: isList ? values : objectOf(names, values) };
  }

  /** With its colon read too. */
  #name(last: string | undefined): string {
    if (this.#next() !== QUOTE) throw new SyntaxError("a name has no quotes");
    let name = last;
    if (name === undefined || !this.#goesOnWith(name))
      name = apart(this.#text.slice(this.#at, stringEnd(this.#text, this.#at)));
    this.#at += name.length;
    if (this.#next() !== COLON) throw new SyntaxError("a name has no value");
    this.#at++;
    return name;
  }

  /** Reads past the comma or the end of a list or object. */
  #after(close: number): number {
    const c = this.#next();
    if (c !== COMMA && c !== close) throw new SyntaxError("neither a comma nor an end");
    this.#at++;
    return c;
  }

  /** The first code that is no space; NaN at the end. */
  #next(): number {
    while (isSpace(this.#code(0))) this.#at++;
    return this.#code(0);
  }
  #code(ahead: number): number {
    return this.#text.charCodeAt(this.#at + ahead);
  }
  #goesOnWith(text: string): boolean {
    return this.#text.slice(this.#at, this.#at + text.length) === text;
  }
}

function objectOf(names: readonly string[], values: readonly unknown[]): object {
  const object: Record<string, unknown> = {};
  for (let i = 0; i < names.length; i++) {
    const name = JSON.parse(names[i] as string) as string;
    if (name === "__proto__" || Object.hasOwn(object, name)) throw new SyntaxError("a member that is not like others");
    object[name] = values[i];
  }
  return object;
}

const areSame = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a.length === b.length && a.every((item, i) => item === b[i]);

/** A part of a long text keeps all of it alive; this one does not. */
const apart = (part: string): string => ` ${part}`.slice(1);

/** Where the value that begins at `from` ends, if it is one; what is between is judged by `JSON.parse`. */
function valueEnd(text: string, from: number): number {
  const c = text.charCodeAt(from);
  if (c === QUOTE) return stringEnd(text, from);
  let at = from;
  if (c !== BRACE && c !== BRACKET) {
    while (!isAfterValue(text.charCodeAt(at))) at++;
    return at;
  }
  for (let depth = 0; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === QUOTE) at = stringEnd(text, at) - 1;
    else if (c === BRACE || c === BRACKET) depth++;
    else if ((c === BRACE_END || c === BRACKET_END) && --depth === 0) return at + 1;
  }
  return text.length;
}

function stringEnd(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === QUOTE) return at + 1;
    if (c === BACKSLASH) at++;
  }
  return text.length;
}

const isSpace = (c: number): boolean => c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09;
const isAfterValue = (c: number): boolean =>
  c === COMMA || c === BRACE_END || c === BRACKET_END || isSpace(c) || Number.isNaN(c);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACE = 0x7b;
const BRACE_END = 0x7d;
const BRACKET = 0x5b;
const BRACKET_END = 0x5d;

/** The last body is kept for this many nodes, with at most `LONGEST` bytes each. */
const NODES = 64;
const LONGEST = 128 * 1024;

/** JSON bytes -> value. Errors: as `parseJson`. */
export type JsonReader = (bytes: Uint8Array) => Result<unknown, Problem>;

/**
 * Reads bodies one after the other. A node posts mostly what it posted before: a part that is spelled as in its last body is
 * not parsed again, and is the very value it was then, so that nobody may change what is read here.
 */
export function jsonReader(): JsonReader {
  const last = new Lru<string, { readonly piece: Piece | null }>(NODES);
  return (bytes) => {
    if (bytes.length > LONGEST) return parseJson(bytes);
    const text = textOf(bytes);
    if (!text.ok) return text;
    const slot = slotOf(text.value);
    // for a node that comes once the pieces would be made for nothing
    const before = last.get(slot);
    const piece = before === undefined ? null : readPieces(text.value, before.piece);
    last.set(slot, { piece });
    return piece === null ? parseText(text.value) : ok(piece.value);
  };
}

const HOST_NAME = /"kubernetes\.io\/hostname"\s*:\s*"([^"]{0,96})/;
/** Tells nodes apart most often, which is enough: one that is taken for another is only read anew. */
const slotOf = (text: string): string => apart(HOST_NAME.exec(text)?.[1] ?? "");
