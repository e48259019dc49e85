/** Lines and columns count from 1. */
interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** True: the text ends too early. */
  readonly isCut: boolean;
  /** For example `expected a value, found \`}\``. */
  readonly message: string;
}

/** Finds where and why a text is not JSON. Only for texts that do not parse. */
export function jsonFaultOf(text: string): JsonFault {
  const { at, expected } = new Scanner(text).run();
  const lines = text.slice(0, at).split("\n");
  const place = { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
  if (at >= text.length) return { ...place, isCut: true, message: `expected ${expected}; the text is cut off` };
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  const found = /["\\]/.test(character) ? character : JSON.stringify(character).slice(1, -1);
  return { ...place, isCut: false, message: `expected ${expected}, found \`${found}\`` };
}

/** The fault of a request's body in one line: `line 3, column 7: expected a value, found \`}\``. */
export function faultOf(text: string): string {
  if (text.trim() === "") return "the body is empty";
  const { line, column, isCut, message } = jsonFaultOf(text);
  return `line ${line}, column ${column}${isCut ? " (the end)" : ""}: ${message}`;
}

interface Fault {
  readonly at: number;
  readonly expected: string;
}
const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

/** Scans JSON with its own stack, so that deep nesting uses memory and not the call stack. */
class Scanner {
  readonly #text: string;
  #at = 0;
  /** The expected closing brackets. */
  readonly #open: string[] = [];
  constructor(text: string) {
    this.#text = text;
  }

  run(): Fault {
    let expected = "a value";
    while (true) {
      this.#skip(SPACE);
      const next = expected === "a value" ? this.#value() : this.#afterValue();
      if (typeof next !== "string") return next;
      expected = next;
    }
  }

  #value(): string | Fault {
    const c = this.#text[this.#at];
    if (c === "{") return this.#enter("}", () => this.#key("a name in quotes or `}`"));
    if (c === "[") return this.#enter("]", () => "a value");
    if (c === '"') return this.#string() ?? "a separator";
    if (this.#skip(NUMBER) || this.#skip(WORD)) return "a separator";
    return { at: this.#at, expected: this.#open.length === 0 ? "a JSON value" : "a value" };
  }

  #enter(closer: string, inside: () => string | Fault): string | Fault {
    this.#at++;
    this.#skip(SPACE);
    if (this.#text[this.#at] === closer) {
      this.#at++;
      return "a separator";
    }
    this.#open.push(closer);
    return inside();
  }

  #key(expected: string): string | Fault {
    this.#skip(SPACE);
    if (this.#text[this.#at] !== '"') return { at: this.#at, expected };
    const broken = this.#string();
    if (broken !== null) return broken;
    this.#skip(SPACE);
    if (this.#text[this.#at] !== ":") return { at: this.#at, expected: "`:`" };
    this.#at++;
    return "a value";
  }

  #afterValue(): string | Fault {
    const closer = this.#open.at(-1);
    if (closer === undefined) return { at: this.#at, expected: "nothing more" };
    const c = this.#text[this.#at];
    if (c === closer) {
      this.#at++;
      this.#open.pop();
      return "a separator";
    }
    if (c !== ",") return { at: this.#at, expected: `\`,\` or \`${closer}\`` };
    this.#at++;
    return closer === "}" ? this.#key("a name in quotes") : "a value";
  }

  /** Scans a string; null: it is valid; else the first invalid character. */
  #string(): Fault | null {
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const c = this.#text[this.#at] as string;
      if (c === '"') {
        this.#at++;
        return null;
      }
      if (c < " ") return { at: this.#at, expected: 'a character or `"` (control characters are written as \\u....)' };
      if (c !== "\\") continue;
      this.#at++;
      if (!this.#skip(ESCAPE)) return { at: this.#at, expected: "an escape such as \\n or \\u0041" };
      this.#at--;
    }
    return { at: this.#at, expected: '`"`' };
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return false;
    this.#at += match[0].length;
    return true;
  }
}
