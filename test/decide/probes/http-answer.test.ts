import { expect, test } from "vitest";
import { HttpAnswer, MAX_HEAD_BYTES } from "../../../api/decide/probes/http-answer.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const ANSWERS: readonly string[] = [
  `${OK}Content-Length: 2\r\n\r\nok and more`,
  `${OK}\r\nuntil the end`,
  `${OK}Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n3 \r\nand\r\n0\r\nTrailer: x\r\n\r\n`,
  `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`,
  `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nokay`,
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 302 Found\nLocation: \n /folded\nContent-Length: 0\n\n",
  "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
  "HTTP/1.0 404 Gone\n\nbody",
  "hello\r\n",
  "hello",
  "",
  `${OK}no colon\r\n\r\n`,
  `${OK}A: b`,
];
function answerTo(parts: readonly string[], end: string | undefined): unknown {
  const answer = new HttpAnswer(() => 10);
  for (const part of parts) answer.push(part);
  answer.end(end);
  const { head, body, error } = answer;
  return { head, body, error };
}

test("an HTTP probe answer is parsed the same however it is split into pieces", () => {
  for (const text of ANSWERS) {
    for (const end of [undefined, "read tcp: read: connection reset by peer"]) {
      const whole = answerTo([text], end);
      expect(answerTo(Array.from(text), end), text).toEqual(whole);
      for (let at = 1; at < text.length; at++) {
        expect(answerTo([text.slice(0, at), text.slice(at)], end), `${text} cut at ${at}`).toEqual(whole);
      }
    }
  }
});
test("no more of a body is kept than is wanted, and an endless head is cut off", () => {
  const long = answerTo([`${OK}\r\n${"x".repeat(100)}`], undefined);
  expect(long).toMatchObject({ body: "x".repeat(10), error: undefined });
  const line = `A: ${"b".repeat(100_000)}\r\n`;
  const endless = new HttpAnswer(() => 10);
  endless.push(OK);
  let pushed = 0;
  for (; !endless.isDone && pushed < 2 * MAX_HEAD_BYTES; pushed += line.length) endless.push(line);
  expect(pushed).toBeLessThan(MAX_HEAD_BYTES + 2 * line.length);
  expect(endless.error).toContain("server response headers exceeded 10485760 bytes; aborted");
  const heads = new HttpAnswer(() => 10);
  for (pushed = 0; !heads.isDone && pushed < 2 * MAX_HEAD_BYTES; pushed += 25)
    heads.push("HTTP/1.1 100 Continue\r\n\r\n");
  expect(heads.error).toContain("server response headers exceeded");
});
test("an answer that is not HTTP is an error before the connection ends", () => {
  const answer = new HttpAnswer(() => 10);
  answer.push("SSH-2.0-");
  expect(answer.isDone).toBe(false);
  answer.push("OpenSSH\r\n");
  expect(answer.error).toBe(
    'net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH"',
  );
});
