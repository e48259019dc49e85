import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { attempt } from "../../actuator/probes/engine/attempt.ts";
import type { ProbeHandler, ProbeOutcome } from "../../api/model/probe-spec.ts";
import { getAt, TARGET } from "../actuator/probes/servers.ts";
import { selfSigned } from "../kit/certificates.ts";
import { noPrograms } from "../kit/programs.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { freePort } from "./pods/port.ts";
import { WAITS } from "./pods/until.ts";

const why = noPrograms("probes of servers that others wrote", "nginx", "redis-server", "etcd", "openssl");
const SERVING = { result: "success", output: "service healthy" };
const ask = (handler: ProbeHandler, timeoutMs = 20_000): Promise<ProbeOutcome> =>
  attempt({ handler, timeoutMs, target: TARGET }, { exec: () => Promise.reject(new Error("no runtime here")) });

describe.skipIf(why !== undefined)("probes of well-known servers", () => {
  const directory = scratchFolder();
  const children: ChildProcess[] = [];
  const start = (command: string, ...args: readonly string[]): ChildProcess => {
    const env = { PATH: `${process.env["PATH"]}:/usr/sbin` };
    const child = spawn(command, args, { stdio: "ignore", cwd: directory, env });
    children.push(child);
    return child;
  };
  const stop = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  afterAll(() => Promise.all(children.map(stop)));

  test("nginx: pages, redirects, TLS with HTTP/2, and a stopped server", async () => {
    const [plain, secure] = [await freePort(), await freePort()];
    const { key, cert } = selfSigned(2048);
    writeFileSync(join(directory, "key.pem"), key, { mode: 0o600 });
    writeFileSync(join(directory, "cert.pem"), cert);
    mkdirSync(join(directory, "logs"));
    writeFileSync(join(directory, "nginx.conf"), nginxConf(directory, plain, secure));
    const nginx = start(
      "nginx",
      "-p",
      directory,
      "-c",
      join(directory, "nginx.conf"),
      "-e",
      join(directory, "error.log"),
    );
    await expect.poll(() => ask({ http: getAt(plain) }), WAITS).toEqual({ result: "success", output: "fine" });
    const get = (path: string, more: object = {}) => ask({ http: getAt(plain, { path, ...more }) });
    const hello = [{ name: "Host", value: "hello.example" }];
    expect(await get("/agent", { headers: hello })).toEqual({
      result: "success",
      output: "kube-probe/1.36 hello.example",
    });
    expect(await get("/missing")).toEqual({ result: "failure", output: "HTTP probe failed with statuscode: 404" });
    expect(await get("/moved")).toEqual({ result: "success", output: "fine" });
    expect(await get("/elsewhere")).toMatchObject({ result: "warning" });
    const secured = getAt(secure, { scheme: "HTTPS", path: "/version" });
    expect(await ask({ http: secured })).toEqual({ result: "success", output: "HTTP/2.0" });
    expect(await ask({ http: getAt(secure) })).toEqual({
      result: "failure",
      output: "HTTP probe failed with statuscode: 400",
    });
    expect(await ask({ http: getAt(plain, { scheme: "HTTPS" }) })).toEqual({
      result: "failure",
      output: `Get "https://127.0.0.1:${plain}/": http: server gave HTTP response to HTTPS client`,
    });
    await stop(nginx);
    expect(await get("/")).toEqual({
      result: "failure",
      output: `Get "http://127.0.0.1:${plain}/": dial tcp 127.0.0.1:${plain}: connect: connection refused`,
    });
  });

  test("redis: a TCP connection, and a stopped server", async () => {
    const port = await freePort();
    const redis = start(
      "redis-server",
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--dir",
      directory,
    );
    const probe = () => ask({ tcp: { host: "", port } });
    await expect.poll(probe, WAITS).toEqual({ result: "success", output: "" });
    // a server that does not speak HTTP is reported as such
    expect(await ask({ http: getAt(port) })).toMatchObject({ result: "failure" });
    await stop(redis);
    expect(await probe()).toEqual({
      result: "failure",
      output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  test("etcd: health over gRPC and HTTP, and a stopped server", async () => {
    const [client, peer] = [await freePort(), await freePort()];
    const urls = (port: number) => `http://127.0.0.1:${port}`;
    const etcd = start(
      "etcd",
      ...["--data-dir", join(directory, "etcd"), "--name", "one", "--initial-cluster", `one=${urls(peer)}`],
      ...["--listen-client-urls", urls(client), "--advertise-client-urls", urls(client)],
      ...["--listen-peer-urls", urls(peer), "--initial-advertise-peer-urls", urls(peer)],
    );
    const probe = (service = "") => ask({ grpc: { port: client, service } });
    await expect.poll(() => probe(), WAITS).toEqual(SERVING);
    expect(await probe("nobody")).toEqual({
      result: "failure",
      output: "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
    });
    const health = () => ask({ http: getAt(client, { path: "/health" }) });
    const healthy = { result: "success", output: expect.stringContaining('"health":"true"') };
    await expect.poll(health, WAITS).toMatchObject(healthy);
    await stop(etcd);
    expect(await ask({ grpc: { port: client, service: "" } }, 1000)).toEqual({
      result: "failure",
      output: `timeout: failed to connect service "127.0.0.1:${client}" within 1s: context deadline exceeded`,
    });
  });
});

const nginxConf = (directory: string, plain: number, secure: number): string => `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log;
events { worker_connections 64; }
http {
  access_log off;
  default_type text/plain;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${directory}/${name};`).join(" ")}
  server {
    listen 127.0.0.1:${plain};
    location = / { return 200 fine; }
    location = /agent { return 200 "$http_user_agent $http_host"; }
    location = /moved { return 301 http://127.0.0.1:${plain}/; }
    location = /elsewhere { return 302 http://elsewhere.invalid/; }
    location / { return 404; }
  }
  server {
    listen 127.0.0.1:${secure} ssl http2;
    ssl_certificate ${directory}/cert.pem;
    ssl_certificate_key ${directory}/key.pem;
    location / { return 200 $server_protocol; }
  }
}
`;
