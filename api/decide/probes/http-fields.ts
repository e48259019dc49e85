import { quoteBytes } from "../go/strconv.ts";
import { headerKey, isToken } from "./http-request.ts";

/** The limit for one header with its folded lines: the rest of a longer one is checked, then forgotten. */
const MAX_FIELD_BYTES = 64 * 1024;
/** The limit for values of one name: so many are shown where there should be one. */
const MAX_VALUES = 16;
/** The most that Go shows of a malformed first line. */
const MAX_INITIAL_BYTES = 80;
const MAX_QUOTED_BYTES = 4096;

/** The headers about redirection and the body's length; values without surrounding spaces. */
export interface BodyHeaders {
  readonly locations: string[];
  readonly lengths: string[];
  readonly encodings: string[];
}

/** Headers line by line, all of them checked, in a time that grows with their bytes. Go 1.26: textproto.Reader.ReadMIMEHeader. */
export class HttpFields {
  readonly bodyHeaders: BodyHeaders = { locations: [], lengths: [], encodings: [] };
  /** The header that the next line may continue; undefined: none yet. */
  #field: string | undefined;
  /** True: the header has an invalid byte, perhaps in a part that is not stored. */
  #isBad = false;
  #isCut = false;

  /** Adds a line without its line end, not empty, as a string of bytes. Returns Go's error; undefined: none so far. */
  push(line: string): string | undefined {
    if (isFolded(line)) {
      if (this.#field === undefined) return initialFault(line);
      this.#isBad ||= BAD.test(line);
      if (!this.#isCut) this.#keep(`${this.#field} ${trimmed(line)}`);
      return undefined;
    }
    const wrong = this.end();
    if (wrong !== undefined) return wrong;
    if (!line.includes(":")) return `malformed MIME header: missing colon: ${quotedStart(line)}`;
    this.#keep(trimmed(line));
    this.#isBad = BAD.test(line);
    return undefined;
  }
  /** Ends the headers: no line follows. Returns Go's error, if any. */
  end(): string | undefined {
    const field = this.#field;
    if (field === undefined) return undefined;
    this.#field = undefined;
    const colon = field.indexOf(":");
    // the kept part of an endless name has none
    const name = colon < 0 ? field : field.slice(0, colon);
    if (colon < 0 || !isToken(name.includes(" ") ? name.replaceAll(" ", "_") : name)) {
      return `malformed MIME header line: ${quotedStart(field)}`;
    }
    if (this.#isBad) return `malformed MIME header line: ${quotedStart(headerKey(name) + field.slice(colon))}`;
    const values = WHERE.get(name.toLowerCase());
    if (values !== undefined) {
      const value = field.slice(colon + 1);
      // a text that was cut must not look whole
      this.#add(this.bodyHeaders[values], this.#isCut ? value : trimmed(value));
    }
    return undefined;
  }
  #keep(field: string): void {
    this.#isCut = field.length > MAX_FIELD_BYTES;
    this.#field = this.#isCut ? field.slice(0, MAX_FIELD_BYTES) : field;
  }
  #add(values: string[], value: string): void {
    // a second, different value is stored too, since it is an error by itself
    if (values.length < MAX_VALUES || (values.length === MAX_VALUES && value !== values[0])) values.push(value);
  }
}
const WHERE: ReadonlyMap<string, keyof BodyHeaders> = new Map([
  ["location", "locations"],
  ["content-length", "lengths"],
  ["transfer-encoding", "encodings"],
]);
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no header may have
const BAD = /[\x00-\x08\x0a-\x1f\x7f]/;
const isFolded = (line: string): boolean => isSpace(line.charCodeAt(0));
const initialFault = (line: string): string =>
  line.length > MAX_INITIAL_BYTES ? "message too large" : `malformed MIME header initial line: ${quoteBytes(line)}`;

/** Returns the part that errors show of a text that a server chose. */
export const quotedStart = (bytes: string): string => quoteBytes(bytes.slice(0, MAX_QUOTED_BYTES));

/** The text without surrounding spaces and tabs; a regular expression would be slow on inner spaces. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return end - start === text.length ? text : text.slice(start, end);
}
const isSpace = (code: number): boolean => code === 0x20 || code === 0x09;
