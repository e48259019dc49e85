import { constants, type Http2ServerRequest, type Http2ServerResponse, createSecureServer as h2 } from "node:http2";
import { createServer, type TlsOptions } from "node:tls";
import { afterAll, describe, expect, test } from "vitest";
import { httpProbe } from "../../../actuator/probes/http/http.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../../api/model/probe-spec.ts";
import { selfSigned } from "../../kit/certificates.ts";
import { noPrograms } from "../../kit/programs.ts";
import { getAt, reportOf, Servers, TARGET } from "./servers.ts";

const why = noPrograms("probes over TLS", "openssl");
const servers = new Servers();
afterAll(() => servers.close());
const LONG_MS = 20_000;
/** The timeout of probes that hang. */
const SHORT_MS = 2000;
const GET = 'Get "https://HOST/": ';
const LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
const probe = (port: number, timeoutMs = LONG_MS, more: Partial<ProbeHttpGet> = {}): Promise<ProbeOutcome> =>
  httpProbe(getAt(port, { scheme: "HTTPS", ...more }), TARGET, timeoutMs);

describe.skipIf(why !== undefined)("an HTTPS probe", () => {
  const certificate = why === undefined ? selfSigned(2048) : { key: "", cert: "" };
  const tls = (more: TlsOptions = {}) =>
    servers.listen(
      createServer({ ...certificate, ...more }, (socket) => {
        socket.on("error", () => {});
        socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
      }).on("tlsClientError", () => {}),
    );

  test("checks no certificate, however short its key", async () => {
    expect(reportOf(await probe(await tls()))).toEqual(["success", "ok"]);
    const short = { ...selfSigned(1024), ciphers: "DEFAULT@SECLEVEL=0" };
    expect(reportOf(await probe(await tls(short)))).toEqual(["success", "ok"]);
  });
  test("sends a host name by SNI, but no address", async () => {
    const names: (string | undefined)[] = [];
    const port = await tls({
      SNICallback: (name, done) => {
        names.push(name);
        done(null);
      },
    });
    await probe(port);
    await probe(port, LONG_MS, { host: "localhost" });
    expect(names).toEqual(["localhost"]);
  });
  test.each([
    [
      "an old version",
      { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
      "protocol version not supported",
    ],
    ["a certificate of the client", { requestCert: true, rejectUnauthorized: true }, "certificate required"],
  ] as const)("fails for a server that wants %s", async (_, options, words) => {
    expect(reportOf(await probe(await tls(options)))).toEqual(["failure", `${GET}remote error: tls: ${words}`]);
  });
  test("fails for a server that does not speak TLS", async () => {
    const plain = await servers.raw("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n", "end");
    expect(reportOf(await probe(plain))).toEqual(["failure", `${GET}http: server gave HTTP response to HTTPS client`]);
    expect(reportOf(await probe(await servers.raw("", "end")))).toEqual(["failure", `${GET}EOF`]);
    const reset = "read tcp HOST->HOST: read: connection reset by peer";
    expect(reportOf(await probe(await servers.raw("", "reset")))).toEqual(["failure", `${GET}${reset}`]);
    const handshake = `${GET}context deadline exceeded`;
    expect(reportOf(await probe(await servers.serve(), SHORT_MS))).toEqual(["failure", handshake]);
    const banner = await servers.serve((socket) => void socket.write("SSH-2.0-OpenSSH_9.6\r\n"));
    const noTls = "tls: first record does not look like a TLS handshake";
    expect(reportOf(await probe(banner))).toEqual(["failure", `${GET}${noTls}`]);
  });

  describe("over HTTP/2", () => {
    type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;
    const serve = (handler: Handler) => servers.listen(h2({ ...certificate, ALPNProtocols: ["h2"] }, handler));

    test("sends the same request", async () => {
      const port = await serve(({ url, headers }, response) => {
        const { ":authority": authority, "user-agent": agent, accept, "x-a": a } = headers;
        response.end(JSON.stringify([url, authority, agent, accept, a]));
      });
      const headers = [
        { name: "Host", value: "example.org" },
        { name: "Connection", value: "close" },
        { name: "X-A", value: "b" },
      ];
      const outcome = await probe(port, LONG_MS, { path: "/a b?c", headers });
      expect(reportOf(outcome)).toEqual(["success", '["/a%20b?c","example.org","kube-probe/1.36","*/*","b"]']);
    });
    test("treats responses the same", async () => {
      const port = await serve(({ url }, response) => {
        if (url === "/final") response.writeHead(500).end("secret");
        else if (url === "/long") response.end("x".repeat(100_000));
        else response.writeHead(302, { location: "/final" }).end();
      });
      expect(reportOf(await probe(port))).toEqual(["failure", "HTTP probe failed with statuscode: 500"]);
      expect(reportOf(await probe(port, LONG_MS, { path: "/long" }))).toEqual(["success", "x".repeat(10_240)]);
    });
    test("repeats the request when the stream is refused", async () => {
      let asked = 0;
      const port = await serve(({ stream }, response) => {
        if (asked++ < 1) stream.on("error", () => {}).close(constants.NGHTTP2_REFUSED_STREAM);
        else response.end("ok");
      });
      expect(reportOf(await probe(port))).toEqual(["success", "ok"]);
      const never = await serve(({ stream }) => stream.on("error", () => {}).close(constants.NGHTTP2_REFUSED_STREAM));
      expect(reportOf(await probe(never, SHORT_MS))).toEqual(["failure", `${GET}context deadline exceeded`]);
    });
    test("fails the same when the response breaks off", async () => {
      const reset = "stream error: stream ID 1; INTERNAL_ERROR; received from peer";
      const resets = await serve(({ stream }) => stream.on("error", () => {}).close(constants.NGHTTP2_INTERNAL_ERROR));
      expect(reportOf(await probe(resets))).toEqual(["failure", `${GET}${reset}`]);
      const ends = await serve(({ stream }) => stream.session?.destroy());
      expect(reportOf(await probe(ends))).toEqual(["failure", `${GET}unexpected EOF`]);
      const half = await serve(({ stream }, response) => {
        stream.on("error", () => {});
        response.write("x");
        setImmediate(() => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
      });
      const [word, text] = reportOf(await probe(half));
      expect([word, text]).toEqual([expect.stringMatching(/error|failure/), expect.stringContaining(reset)]);
      const short = await serve((_, response) => void response.writeHead(200, { "content-length": "10" }).end("x"));
      expect(reportOf(await probe(short))).toEqual(["error", "unexpected EOF"]);
      expect(reportOf(await probe(await serve(() => {}), SHORT_MS))).toEqual(["failure", `${GET}${LATE}`]);
      const hangs = await serve((_, response) => void response.write("x"));
      expect(reportOf(await probe(hangs, SHORT_MS))[0]).toBe("error");
    });
  });
});
