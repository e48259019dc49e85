import { createServer, type IncomingHttpHeaders } from "node:http";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { httpProbe } from "../../../actuator/probes/http/http.ts";
import { PATIENT } from "../../patient.ts";
import { ANSWERS } from "./http-answers.ts";
import { getAt, reportOf, Servers, TARGET } from "./servers.ts";

const servers = new Servers();
afterAll(() => servers.close());

/** The timeout of probes that time out, and that of probes that do not. */
const SHORT_MS = 2000;
const LONG_MS = 20_000;

describe("the outcome of an HTTP probe", () => {
  test.for(ANSWERS)(
    "for the response %j, then %s, is the kubelet's",
    { concurrent: true },
    async ([text, after, result, output], { expect }) => {
      const port = await servers.raw(text, after);
      const timeoutMs = output.includes("deadline exceeded") ? SHORT_MS : LONG_MS;
      const outcome = await httpProbe(getAt(port), TARGET, timeoutMs);
      expect(reportOf(outcome)).toEqual([result, output]);
      // a body that cannot be read to its end is an error, and its result is a failure
      expect("error" in outcome ? outcome.state : null).toBe(result === "error" ? "failure" : null);
    },
  );
  test("is an error without a result when the request cannot be made", async () => {
    expect(await httpProbe(getAt(80, { port: "web" } as never), TARGET, LONG_MS)).toEqual({
      error: 'strconv.Atoi: parsing "web": invalid syntax',
    });
  });
  test("is a failure when no server listens or answers, or the name does not resolve", async () => {
    const refused = 'Get "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused';
    expect(reportOf(await httpProbe(getAt(1), TARGET, LONG_MS))).toEqual(["failure", refused]);
    const [, text] = reportOf(await httpProbe(getAt(1, { host: "::1" }), TARGET, LONG_MS));
    expect(text).toMatch(/^Get "http:\/\/\[::1\]:1\/": dial tcp \[::1\]:1: connect: /);
    const [, unknown] = reportOf(await httpProbe(getAt(80, { host: "no..name" }), TARGET, LONG_MS));
    expect(unknown).toBe('Get "http://no..name:80/": dial tcp: lookup no..name: no such host');
  });
  test("is a failure when the response headers never end", async () => {
    const port = await servers.serve((socket) => {
      const more = (): void => {
        while (socket.writable && socket.write(`X-A: ${"b".repeat(60_000)}\r\n`));
      };
      socket.write("HTTP/1.1 200 OK\r\n");
      socket.on("drain", more);
      more();
    });
    const [result, text] = reportOf(await httpProbe(getAt(port), TARGET, LONG_MS));
    expect([result, text]).toEqual([
      "failure",
      expect.stringContaining("server response headers exceeded 10485760 bytes"),
    ]);
  });
});

describe("the request of an HTTP probe", () => {
  const seen: { url: string; headers: IncomingHttpHeaders }[] = [];
  afterEach(() => seen.splice(0));
  const server = (locations: Readonly<Record<string, string>> = {}) =>
    servers.listen(
      createServer((request, response) => {
        seen.push({ url: request.url ?? "", headers: request.headers });
        const location = locations[request.url ?? ""];
        response.writeHead(location === undefined ? 200 : 307, location === undefined ? {} : { location });
        response.end("ok");
      }),
    );

  test("uses a new connection each time, without compression or proxy", async () => {
    const { http_proxy } = process.env;
    process.env["http_proxy"] = "http://127.0.0.1:1";
    try {
      const port = await server();
      expect(reportOf(await httpProbe(getAt(port, { path: "/a b?c=d#e" }), TARGET, LONG_MS))).toEqual([
        "success",
        "ok",
      ]);
      const headers = {
        host: `127.0.0.1:${port}`,
        "user-agent": "kube-probe/1.36",
        accept: "*/*",
        connection: "close",
      };
      expect(seen).toEqual([{ url: "/a%20b?c=d", headers }]);
    } finally {
      if (http_proxy === undefined) delete process.env["http_proxy"];
      else process.env["http_proxy"] = http_proxy;
    }
  });
  test.each([
    [[["Connection", "upgrade"]], "upgrade, close"],
    [[["Connection", "x, Close"]], "x, Close"],
    [
      [
        ["Connection", "Upgrade"],
        ["Upgrade", "h2c"],
      ],
      "Upgrade",
    ],
  ] as const)("asks to close the connection, unless it is to be upgraded: %j", async (list, connection) => {
    const port = await server();
    const headers = list.map(([name, value]) => ({ name, value }));
    await httpProbe(getAt(port, { headers }), TARGET, LONG_MS);
    expect(seen.map((one) => one.headers.connection)).toEqual([connection]);
  });
  test("has the probe's headers and Host, and the credentials of its URL", async () => {
    const port = await server();
    const headers = [
      { name: "Host", value: "example.org" },
      { name: "x-twice", value: "1" },
      { name: "X-Twice", value: "2" },
      { name: "Accept", value: "" },
      { name: "User-Agent", value: "" },
      { name: "Content-Length", value: "7" },
    ];
    await httpProbe(getAt(port, { path: "//user:pass@elsewhere/x", headers }), TARGET, LONG_MS);
    const authorization = `Basic ${Buffer.from("user:pass").toString("base64")}`;
    expect(seen).toEqual([
      { url: "/x", headers: { host: "example.org", "x-twice": "1, 2", authorization, connection: "close" } },
    ]);
  });
  test("follows redirects on the same host only", async () => {
    const port = await server({
      "/": "/one?x",
      "/one?x": "two",
      "/two": "http://127.0.0.1:PORT/three".replace("PORT", "0"),
    });
    const host = { name: "Host", value: "example.org" };
    await httpProbe(getAt(port, { headers: [host] }), TARGET, LONG_MS);
    expect(seen.map(({ url, headers: { host, referer } }) => [url, host, referer])).toEqual([
      ["/", "example.org", undefined],
      ["/one?x", "example.org", `http://127.0.0.1:${port}/`],
      ["/two", "example.org", `http://127.0.0.1:${port}/one?x`],
    ]);
  });
  test.each([
    [{ name: "X-A", value: "b\nc" }, 'net/http: invalid header field value for "X-A"'],
    [{ name: "X A", value: "b" }, 'net/http: invalid header field name "X A"'],
  ])("is not sent with the invalid header %j", async (header, words) => {
    const port = await server();
    expect(reportOf(await httpProbe(getAt(port, { headers: [header] }), TARGET, LONG_MS))).toEqual([
      "failure",
      `Get "http://HOST/": ${words}`,
    ]);
    expect(seen).toEqual([]);
  });
  test("has an empty Host for an invalid one", async () => {
    const port = await server();
    await httpProbe(getAt(port, { headers: [{ name: "Host", value: "a b/c" }] }), TARGET, LONG_MS);
    expect(seen[0]?.headers.host).toBe("");
  });
});

test("an HTTP probe reads the response to its end and closes the connection at once", async () => {
  const port = await servers.raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  const before = servers.open;
  await httpProbe(getAt(port), TARGET, LONG_MS);
  await expect.poll(() => servers.open, PATIENT).toBe(before);
});
