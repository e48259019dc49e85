import { err, ok, type Result } from "../../model/result.ts";
import { quoteBytes } from "../go/quote-bytes.ts";
import { headerKey, isToken } from "./http-headers.ts";

/** The head of an answer, and how its body ends. */
export interface HttpHead {
  readonly status: number;
  /** Empty: it has none. */
  readonly location: string;
  /** Bytes of the body; -1: until its end is told. */
  readonly length: number;
  readonly isChunked: boolean;
}

/** How far a first line goes, with what it says against it. Go 1.26: http.ReadResponse. */
export function statusOf(line: string): Result<number, string> {
  const [proto, rest] = cut(line, " ");
  if (rest === undefined) return err(`malformed HTTP response ${quoteBytes(line)}`);
  const code = cut(rest.replace(/^ +/, ""), " ")[0];
  if (!/^(\d{3}|\+\d\d)$/.test(code)) return err(`malformed HTTP status code ${quoteBytes(code)}`);
  if (!/^HTTP\/\d\.\d$/.test(proto)) return err(`malformed HTTP version ${quoteBytes(proto)}`);
  return ok(Number(code));
}

/** Lines of a head without the empty one; a text of bytes. Error: Go's words. Go 1.26: http.ReadResponse. */
export function readHead(lines: readonly string[]): Result<HttpHead, string> {
  const first = lines[0] ?? "";
  const status = statusOf(first);
  if (!status.ok) return status;
  const headers = readHeaders(lines.slice(1));
  if (!headers.ok) return headers;
  const { locations, lengths, encodings } = headers.value;
  const isOld = /^HTTP\/(0\.\d|1\.0)/.test(first);
  const chunked = isOld ? ok(false) : isChunked(encodings);
  if (!chunked.ok) return chunked;
  const length = lengthOf(lengths);
  if (!length.ok) return length;
  const isBodiless = status.value < 200 || status.value === 204 || status.value === 304;
  return ok({
    status: status.value,
    location: locations[0] ?? "",
    length: isBodiless ? 0 : chunked.value ? -1 : length.value,
    isChunked: chunked.value && !isBodiless,
  });
}

/** The headers that say where an answer leads, and how it ends. */
interface Told {
  readonly locations: string[];
  readonly lengths: string[];
  readonly encodings: string[];
}
/** All are checked. Go 1.26: textproto.Reader.ReadMIMEHeader. */
function readHeaders(lines: readonly string[]): Result<Told, string> {
  if (isFolded(lines[0] ?? "")) return err(`malformed MIME header initial line: ${quoteBytes(lines[0] ?? "")}`);
  const told: Told = { locations: [], lengths: [], encodings: [] };
  for (const line of lines.some(isFolded) ? unfolded(lines) : lines) {
    const [name, value] = cut(line, ":");
    if (value === undefined) return err(`malformed MIME header: missing colon: ${quoteBytes(line)}`);
    if (!isToken(name.replaceAll(" ", "_"))) return err(`malformed MIME header line: ${quoteBytes(line)}`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no header may have
    if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value)) {
      return err(`malformed MIME header line: ${quoteBytes(`${headerKey(name)}:${value}`)}`);
    }
    const values = WHERE.get(name.toLowerCase());
    if (values !== undefined) told[values].push(trimmed(value));
  }
  return ok(told);
}
const WHERE: ReadonlyMap<string, keyof Told> = new Map([
  ["location", "locations"],
  ["content-length", "lengths"],
  ["transfer-encoding", "encodings"],
]);
const isFolded = (line: string): boolean => line.startsWith(" ") || line.startsWith("\t");
/** A line that starts with a space goes on with the one before. */
function unfolded(lines: readonly string[]): readonly string[] {
  const whole: string[] = [];
  for (const line of lines) {
    if (isFolded(line) && whole.length > 0) whole.push(`${trimmed(whole.pop() as string)} ${trimmed(line)}`);
    else whole.push(line);
  }
  return whole;
}

function isChunked(encodings: readonly string[]): Result<boolean, string> {
  if (encodings.length > 1) return err(`too many transfer encodings: ${listed(encodings)}`);
  const encoding = encodings[0];
  if (encoding === undefined || encoding.toLowerCase() === "chunked") return ok(encoding !== undefined);
  return err(`unsupported transfer encoding: ${quoteBytes(encoding)}`);
}
function lengthOf(lengths: readonly string[]): Result<number, string> {
  const first = lengths[0];
  if (first === undefined) return ok(-1);
  if (lengths.some((length) => length !== first)) {
    return err(`http: message cannot contain multiple Content-Length headers; got ${listed(lengths)}`);
  }
  if (first === "") return err('invalid empty Content-Length ""');
  return /^\d{1,18}$/.test(first) ? ok(Number(first)) : err(`bad Content-Length ${quoteBytes(first)}`);
}

const listed = (values: readonly string[]): string => `[${values.map(quoteBytes).join(" ")}]`;
const trimmed = (text: string): string => text.replace(/^[ \t]+|[ \t]+$/g, "");
function cut(text: string, mark: string): readonly [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
