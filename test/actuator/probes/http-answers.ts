/** A server's answer, what the server does next, and the outcome and output of a real kubelet 1.36.3's HTTP prober. */
export type Answered = readonly [string, "keep" | "end" | "reset", "success" | "warning" | "failure" | "error", string];

const GET = 'Get "http://HOST/": ';
const BROKEN = `${GET}net/http: HTTP/1.x transport connection broken: `;
const LATE = `${GET}context deadline exceeded (Client.Timeout exceeded while awaiting headers)`;
const LATE_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)";
const RESET = "read tcp HOST->HOST: read: connection reset by peer";
const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const found = (location: string) => `HTTP/1.1 302 x\r\nLocation: ${location}\r\nContent-Length: 2\r\n\r\nok`;

export const ANSWERS: readonly Answered[] = [
  // status lines
  ["hello\r\n", "keep", "failure", `${BROKEN}malformed HTTP response "hello"`],
  ["hello", "end", "failure", `${BROKEN}malformed HTTP response "hello"`],
  ["", "end", "failure", `${GET}EOF`],
  ["", "reset", "failure", `${GET}${RESET}`],
  ["", "keep", "failure", LATE],
  ["HTTP/1.1 abc\r\n\r\n", "keep", "failure", `${BROKEN}malformed HTTP status code "abc"`],
  ["HTTP/1.1 2000 OK\r\n\r\n", "keep", "failure", `${BROKEN}malformed HTTP status code "2000"`],
  ["HTTQ/1.1 200 OK\r\n\r\n", "keep", "failure", `${BROKEN}malformed HTTP version "HTTQ/1.1"`],
  ["HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "keep", "success", ""],
  ["HTTP/1.1 20", "keep", "failure", LATE],
  ["HTTP/1.1 20", "end", "failure", `${BROKEN}malformed HTTP status code "20"`],
  [
    "\x15\x03\x01\x00\x02\x02\x16",
    "end",
    "failure",
    `${BROKEN}malformed HTTP response "\\x15\\x03\\x01\\x00\\x02\\x02\\x16"`,
  ],
  // headers
  [`${OK}Content-`, "keep", "failure", LATE],
  [`${OK}Content-`, "end", "failure", `${BROKEN}malformed MIME header: missing colon: "Content-"`],
  [`${OK}foo bar\r\n\r\n`, "keep", "failure", `${BROKEN}malformed MIME header: missing colon: "foo bar"`],
  [`${OK} foo: bar\r\n\r\n`, "keep", "failure", `${BROKEN}malformed MIME header initial line: " foo: bar"`],
  [`${OK}fo@o: bar\r\n\r\n`, "keep", "failure", `${BROKEN}malformed MIME header line: "fo@o: bar"`],
  [`${OK}fo o: bar\r\nContent-Length: 0\r\n\r\n`, "keep", "success", ""],
  [`${OK}foo: b\x01ar\r\n\r\n`, "keep", "failure", `${BROKEN}malformed MIME header line: "Foo: b\\x01ar"`],
  [`${OK}Content-Length: abc\r\n\r\n`, "keep", "failure", `${BROKEN}bad Content-Length "abc"`],
  [`${OK}Content-Length: \r\n\r\nab`, "end", "failure", `${BROKEN}invalid empty Content-Length ""`],
  [
    `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    "keep",
    "failure",
    `${BROKEN}http: message cannot contain multiple Content-Length headers; got ["1" "2"]`,
  ],
  [`${OK}Transfer-Encoding: gzip\r\n\r\n`, "keep", "failure", `${BROKEN}unsupported transfer encoding: "gzip"`],
  [
    `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
    "keep",
    "failure",
    `${BROKEN}too many transfer encodings: ["chunked" "chunked"]`,
  ],
  // bodies
  ["HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok", "end", "success", "2\r\nok"],
  [`${CHUNKED}2\r\nok\r\n0\r\n\r\n`, "keep", "success", "ok"],
  [`${CHUNKED}xx\r\nok`, "keep", "error", "invalid byte in chunk length"],
  [`${CHUNKED}\r\nok`, "keep", "error", "empty hex number for chunk length"],
  [`${CHUNKED}2\r\nokok\r\n`, "keep", "error", "malformed chunked encoding"],
  [`${CHUNKED}11111111111111111\r\n`, "keep", "error", "http chunk length too large"],
  [`${CHUNKED}2\r\nok`, "end", "error", "unexpected EOF"],
  [`${CHUNKED}2\r\nok\r\n0\r\n`, "end", "error", "http: unexpected EOF reading trailer"],
  [`${CHUNKED}2\r\nok\r\n0\r\n`, "keep", "error", LATE_BODY],
  [`${OK}Content-Length: 100\r\n\r\nshort`, "end", "error", "unexpected EOF"],
  [`${OK}Content-Length: 100\r\n\r\nshort`, "keep", "error", LATE_BODY],
  ["HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nshort", "keep", "error", LATE_BODY],
  [`${OK}\r\nshort`, "end", "success", "short"],
  [`${OK}\r\n${"x".repeat(20_000)}`, "keep", "success", "x".repeat(10_240)],
  ["HTTP/1.0 200 OK\n\nok", "end", "success", "ok"],
  [`${OK}\r\n\xc3\xbc`, "end", "success", "Ã¼"],
  // status codes
  ["HTTP/1.1 204\r\n\r\n", "keep", "success", ""],
  ["HTTP/1.1 101 Sw\r\n\r\n", "keep", "failure", "HTTP probe failed with statuscode: 101"],
  [`HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`, "keep", "success", "ok"],
  ["HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nsecret", "keep", "failure", "HTTP probe failed with statuscode: 503"],
  ["HTTP/1.1 399 x\r\nContent-Length: 2\r\n\r\nok", "keep", "warning", "Probe terminated redirects, Response body: ok"],
  // redirects
  [found("/"), "keep", "failure", 'Get "/": stopped after 10 redirects'],
  [found("http://localhost/x"), "keep", "warning", "Probe terminated redirects, Response body: ok"],
  [
    found("::bad"),
    "keep",
    "failure",
    `${GET}failed to parse Location header "::bad": parse "::bad": missing protocol scheme`,
  ],
  [
    found("/%zz"),
    "keep",
    "failure",
    `${GET}failed to parse Location header "/%zz": parse "/%zz": invalid URL escape "%zz"`,
  ],
  [found("ftp://127.0.0.1/x"), "keep", "failure", 'Get "ftp://127.0.0.1/x": unsupported protocol scheme "ftp"'],
  [
    found("http://127.0.0.1:1/x"),
    "keep",
    "failure",
    'Get "http://127.0.0.1:1/x": dial tcp 127.0.0.1:1: connect: connection refused',
  ],
  ["HTTP/1.1 302 x\r\nContent-Length: 2\r\n\r\nok", "keep", "warning", "Probe terminated redirects, Response body: ok"],
  [
    "HTTP/1.1 302 x\r\nLocation: /final\r\nContent-Length: 100\r\n\r\nx",
    "keep",
    "failure",
    'Get "http://HOST/final": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
  ],
];
