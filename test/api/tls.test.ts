import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { ok } from "../../api/base/result.ts";
import { apiClient } from "../../api/collector/api-client.ts";
import { listen } from "../../api/server/listen.ts";
import { readKeyPair, reloadRenewed } from "../../api/server/tls.ts";
import { startApi } from "../../api/server.ts";
import { run } from "../cli/run.ts";
import { selfSigned } from "../kit/certificates.ts";
import { noPrograms } from "../kit/programs.ts";
import { appOver, dataDirectory, keptLog, raw, serving } from "./serving.ts";

const skip = noPrograms("the API over TLS", "openssl") !== undefined;

function filesIn(dir: string) {
  const files = { certFile: join(dir, "tls.crt"), keyFile: join(dir, "tls.key") };
  const write = ({ cert, key }: ReturnType<typeof selfSigned>) => {
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
  };
  return { files, write };
}
/** The status of a GET by a client that trusts only `ca`. */
const get = async (port: number, path: string, ca: string): Promise<number | undefined> => {
  const sent = request({ host: "127.0.0.1", port, path, ca, servername: "nobody.invalid", agent: false }).end();
  const [response] = await once(sent, "response");
  response.resume();
  return response.statusCode;
};

test.skipIf(skip)("the API with a certificate speaks HTTPS only, and its URL says so", async () => {
  const { files, write } = filesIn(dataDirectory());
  const pair = selfSigned(2048);
  write(pair);
  const { api } = await serving({ tls: files });
  expect(api.url).toBe(`https://127.0.0.1:${api.port}`);
  expect(await get(api.port, "/readyz", pair.cert)).toBe(200);
  await expect(get(api.port, "/readyz", selfSigned(2048).cert)).rejects.toThrow("self-signed certificate");
  expect(await raw(api.port, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")).not.toContain("200 OK");
  const old = connect({
    host: "127.0.0.1",
    port: api.port,
    rejectUnauthorized: false,
    maxVersion: "TLSv1.1",
    minVersion: "TLSv1",
  });
  await expect(once(old, "secureConnect")).rejects.toThrow();
});

test.skipIf(skip)("clients of the project give advice about a certificate of an unknown authority", async () => {
  const { files, write } = filesIn(dataDirectory());
  write(selfSigned(2048));
  const { api } = await serving({ tls: files });
  const words = /its certificate is self-signed, or of an authority that is not known .*NODE_EXTRA_CA_CERTS=FILE/;
  const { code, stderr } = await run(["history", "--api", api.url]);
  expect([code, stderr]).toEqual([4, expect.stringMatching(words)]);
  const sent = await apiClient({ url: api.url, token: async () => ok(undefined) }).send(
    "PUT",
    "v1/nodes/n1/snapshot",
    "{}",
  );
  expect(sent).toEqual({ ok: false, error: { code: "away", message: expect.stringMatching(words) } });
});

test.skipIf(skip)(
  "a renewed certificate is used for new connections, and a faulty one is logged and ignored",
  async () => {
    const { files, write } = filesIn(dataDirectory());
    const [first, second] = [selfSigned(2048), selfSigned(2048)];
    write(first);
    const log = keptLog();
    const pair = readKeyPair(files, Date.now());
    if (!pair.ok) throw new Error(pair.error);
    const listening = await listen(appOver().app, { host: "127.0.0.1", port: 0, tls: pair.value });
    if (!listening.ok || listening.value.tlsServer === null) throw new Error("does not listen");
    const { port, tlsServer, close } = listening.value;
    const end = reloadRenewed(tlsServer, files, log, 20);
    onTestFinished(async () => {
      end();
      await close(0);
    });
    expect(await get(port, "/healthz", first.cert)).toBe(200);
    // the certificate expires within a day
    await vi.waitFor(() => expect(log.lines.map(({ message }) => message)).toContain("certificate expires soon"));
    write({ cert: second.cert, key: first.key });
    await vi.waitFor(() =>
      expect(log.lines.at(-1)?.fields["fault"]).toMatch("is not the private key of the certificate"),
    );
    expect(await get(port, "/healthz", first.cert)).toBe(200);
    write(second);
    await vi.waitFor(() => expect(log.lines.map(({ message }) => message)).toContain("certificate renewed"));
    expect(await get(port, "/healthz", second.cert)).toBe(200);
  },
);

test.skipIf(skip)("the API does not start with files that are not a certificate and its key", async () => {
  const dataDir = dataDirectory();
  const { files, write } = filesIn(dataDir);
  const fault = async () => {
    const api = await startApi({ port: 0, dataDir, tls: files, log: keptLog() });
    if (api.ok) await api.value.close();
    return api.ok ? null : api.error.message;
  };
  expect(await fault()).toMatch(/tls\.crt: cannot be read: ENOENT$/);
  const pair = selfSigned(2048);
  write(pair);
  rmSync(files.keyFile);
  expect(await fault()).toMatch(/tls\.key: cannot be read: ENOENT$/);
  write({ cert: pair.cert, key: selfSigned(2048).key });
  expect(await fault()).toMatch(/tls\.key: is not the private key of the certificate in .*tls\.crt$/);
  write({ cert: pair.key, key: pair.key });
  expect(await fault()).toMatch(/tls\.crt: is no certificate in PEM form/);
  write({ cert: pair.cert, key: pair.cert });
  expect(await fault()).toMatch(/tls\.key: is no private key in PEM form/);
  write(pair);
  const later = readKeyPair(files, Date.now() + 2 * 24 * 3600 * 1000);
  expect(later).toMatchObject({ ok: false, error: expect.stringMatching(/the certificate expired at 20/) });
});
