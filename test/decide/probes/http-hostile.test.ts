import { expect, test } from "vitest";
import { HttpAnswer, MAX_HEAD_BYTES } from "../../../api/decide/probes/http-answer.ts";
import { httpRequest } from "../../../api/decide/probes/http-request.ts";
import { redirected } from "../../../api/decide/probes/http-wire.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";

/**
 * At this size parsing with quadratic time would take hours, and parsing with linear time takes a second: the tests
 * prove the latter by ending.
 */
const HUGE = MAX_HEAD_BYTES - 1000;
const OK = "HTTP/1.1 200 OK\r\n";
const END = "Content-Length: 0\r\n\r\n";
const TE = "Transfer-Encoding: chunked\r\n\r\n";
const filled = (unit: string, bytes = HUGE): string => unit.repeat(Math.floor(bytes / unit.length));
/** Parses the text in pieces, as a connection delivers it. */
function answerTo(text: string, pieceBytes = 64 * 1024, most = 10 * 1024): HttpAnswer {
  const answer = new HttpAnswer(() => most);
  for (let at = 0; at < text.length && !answer.isDone; at += pieceBytes) answer.push(text.slice(at, at + pieceBytes));
  answer.end();
  return answer;
}

test.each<[string, string, string | undefined]>([
  ["folded lines", `${OK}A: b\r\n${filled(" c\r\n")}${END}`, undefined],
  ["empty folded lines", `${OK}A: b\r\n${filled(" \n")}${END}`, undefined],
  ["short headers", `${OK}${filled("a:\r\n")}${END}`, undefined],
  ["spaces in a status line", `HTTP/1.1 200 ${filled(" ")}x\r\n${END}`, undefined],
  ["spaces in a length", `${OK}Content-Length: 0${filled(" ")}x\r\n\r\n`, "bad Content-Length"],
  ["spaces behind a length", `${OK}Content-Length: 0${filled(" ")}\r\n\r\n`, undefined],
  ["zeros of a length", `${OK}Content-Length: ${filled("0")}1\r\n\r\n`, "bad Content-Length"],
  ["carriage returns", `${OK}A:${filled("\r")}\r\n${END}`, "malformed MIME header line"],
  ["a name", `${OK}${filled("a ")}: x\r\n${END}`, "malformed MIME header line"],
  ["lengths", `${OK}${filled("Content-Length: 0\r\n")}${END}`, undefined],
  ["other lengths", `${OK}${filled("Content-Length: 0\r\nContent-Length: 1\r\n")}${END}`, "multiple Content-Length"],
  ["encodings", `${OK}${filled("Transfer-Encoding: chunked\r\n")}${END}`, "too many transfer encodings"],
  ["no colon", `${OK}${filled("x")}\r\n${END}`, "missing colon"],
  ["no status", `${filled(" ")}\r\n`, "malformed HTTP status code"],
  ["heads before the head", `${filled("HTTP/1.1 100 C\r\n\r\n")}${OK}${END}`, undefined],
])("%s: a huge response head is parsed in linear time", (_, text, wrong) => {
  const { error, head } = answerTo(text);
  if (wrong === undefined) expect([head?.status, error]).toEqual([200, undefined]);
  else expect(error).toContain(wrong);
  expect((error ?? "").length).toBeLessThan(400_000);
});
test("a head of 1 MiB that comes byte by byte is parsed", () => {
  const { error, head } = answerTo(`${OK}${filled("A: bcdef\r\n", 1 << 20)}A: ${filled("x", 1 << 20)}\r\n${END}`, 1);
  expect([head?.status, error]).toEqual([200, undefined]);
});
test.each<[string, string, string | undefined]>([
  ["small chunks", `${filled("1\r\na\r\n", 1 << 20)}0\r\n\r\n`, undefined],
  ["spaces in a size", `1${filled(" ", 4000)}x\r\n`, "invalid byte in chunk length"],
  ["extensions", filled(`1;${filled(" ", 3000)}x\r\na\r\n`), "chunked encoding contains too much non-data"],
  ["a size", filled("0"), "header line too long"],
  ["a trailer", `0\r\n${filled("a: b\r\n")}`, "http: suspiciously long trailer after chunked body"],
])("%s: a huge chunked body is parsed in linear time", (_, chunks, error) => {
  for (const piece of [1, 64 * 1024]) expect(answerTo(OK + TE + chunks, piece, HUGE).error).toBe(error);
});

const request = httpRequest(
  { scheme: "HTTP", host: "", port: 80, path: "/a/b", headers: [] },
  [],
  "10.0.0.1",
  "probe",
  v1_36,
);
if (!request.ok) throw new Error(request.error);
const asked = request.value;
const path = (location: string) => {
  const next = redirected(asked, asked, location);
  return next.ok ? next.value?.url.path : next.error;
};
test("a Location header beyond the bound is not followed, and a long one is resolved in linear time", () => {
  const { head } = answerTo(`${OK}Location: a${filled(" ")}x\r\n${END}`);
  expect(path(head?.location ?? "")).toContain("the Location header is longer than the 32768 bytes that are followed");
  for (const unit of ["../", "a/../", "%41", "\xe9", "//", ":", "@", "?"])
    path(`/${filled("a/", 16_000)}${filled(unit, 16_000)}`);
  expect(path(`/${filled("a/", 16_000)}${filled("b/../", 15_000)}`)).toBe(`/${filled("a/", 16_000)}`);
});
test("bytes of a Location that are not UTF-8 are percent-encoded as they came", () => {
  expect(path("/\xe9")).toBe("/%E9");
  expect(path("/\xc3\xa9")).toBe("/%C3%A9");
  expect(path("/%\xe9")).toContain('failed to parse Location header "/%\\xe9": parse "/%\\xe9": invalid URL escape');
});

test.each([
  ["bad trailer\r\n\r\n", 'malformed MIME header: missing colon: "bad trailer"'],
  ["a: b\r\n c\r\n\r\n", undefined],
  ["a@: b\r\n\r\n", 'malformed MIME header line: "a@: b"'],
  ["a: b\r\n", "http: suspiciously long trailer after chunked body"],
  ["\r", "http: unexpected EOF reading trailer"],
])("a chunked body with trailer %j ends as in Go", (trailer, error) => {
  for (const piece of [1, 2, 100]) expect(answerTo(`${OK}${TE}1\r\na\r\n0\r\n${trailer}`, piece).error).toBe(error);
});
test.each([
  ["1\na\r\n", "chunked line ends with bare LF"],
  ["1\r;\r\na\r\n", "invalid CR in chunked line"],
  [" 1\r\na\r\n", "invalid byte in chunk length"],
  ["1 \r\nab\n", "malformed chunked encoding"],
])("a body with chunks %j fails as in Go", (chunks, error) => {
  for (const piece of [1, 2, 100]) expect(answerTo(OK + TE + chunks, piece).error).toBe(error);
});
test.each([
  ["9223372036854775807", undefined],
  ["9223372036854775808", 'bad Content-Length "9223372036854775808"'],
  ["00000000000000000000000002", undefined],
])("Content-Length %s is accepted or refused as in Go", (length, error) => {
  const { error: reported, head, body } = answerTo(`${OK}Content-Length: ${length}\r\n\r\nok`, 10, 2);
  expect(reported?.slice(reported.indexOf("bad"))).toBe(error);
  if (error === undefined) expect([head?.length, body]).toEqual([Number(length), "ok"]);
});
