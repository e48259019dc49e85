import { err, ok, type Result } from "../../model/result.ts";
import { quotedStart, type Told } from "./http-fields.ts";

/** The head of an answer, and how its body ends. */
export interface HttpHead {
  readonly status: number;
  /** A text of bytes; empty: it has none. */
  readonly location: string;
  /** Bytes of the body; -1: until its end is told. */
  readonly length: number;
  readonly isChunked: boolean;
}

/** How far a first line goes, with what it says against it. Go 1.26: http.ReadResponse. */
export function statusOf(line: string): Result<number, string> {
  const [proto, rest] = cut(line, " ");
  if (rest === undefined) return err(`malformed HTTP response ${quotedStart(line)}`);
  const code = cut(rest.replace(/^ +/, ""), " ")[0];
  if (!/^(\d{3}|\+\d\d)$/.test(code)) return err(`malformed HTTP status code ${quotedStart(code)}`);
  if (!/^HTTP\/\d\.\d$/.test(proto)) return err(`malformed HTTP version ${quotedStart(proto)}`);
  return ok(Number(code));
}

/** The head of a first line, with its status, and of its headers. Error: Go's words. Go 1.26: http.ReadResponse. */
export function headOf(
  first: string,
  status: number,
  { locations, lengths, encodings }: Told,
): Result<HttpHead, string> {
  const isOld = first.startsWith("HTTP/0.") || first.startsWith("HTTP/1.0");
  const chunked = isOld ? ok(false) : isChunked(encodings);
  if (!chunked.ok) return chunked;
  const length = lengthOf(lengths);
  if (!length.ok) return length;
  const isBodiless = status < 200 || status === 204 || status === 304;
  return ok({
    status,
    location: locations[0] ?? "",
    length: isBodiless ? 0 : chunked.value ? -1 : length.value,
    isChunked: chunked.value && !isBodiless,
  });
}

function isChunked(encodings: readonly string[]): Result<boolean, string> {
  if (encodings.length > 1) return err(`too many transfer encodings: ${listed(encodings)}`);
  const encoding = encodings[0];
  if (encoding === undefined || encoding.toLowerCase() === "chunked") return ok(encoding !== undefined);
  return err(`unsupported transfer encoding: ${quotedStart(encoding)}`);
}

/** Of 63 bits. */
const MOST_LENGTH = "9223372036854775807";
function lengthOf(lengths: readonly string[]): Result<number, string> {
  const first = lengths[0];
  if (first === undefined) return ok(-1);
  if (lengths.some((length) => length !== first)) {
    return err(`http: message cannot contain multiple Content-Length headers; got ${listed(lengths)}`);
  }
  if (first === "") return err('invalid empty Content-Length ""');
  const digits = /^0*(\d{1,19})$/.exec(first)?.[1];
  if (digits === undefined || (digits.length === MOST_LENGTH.length && digits > MOST_LENGTH)) {
    return err(`bad Content-Length ${quotedStart(first)}`);
  }
  return ok(Number(digits));
}

const listed = (values: readonly string[]): string => `[${values.map(quotedStart).join(" ")}]`;
function cut(text: string, mark: string): readonly [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
