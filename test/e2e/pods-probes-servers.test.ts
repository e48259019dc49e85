import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { selfSigned } from "../kit/certificates.ts";
import { noPrograms } from "../kit/programs.ts";
import { giveAddresses } from "./containerd/cni.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { servedContainer } from "./pods/served/container.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const what = "probes over TLS and gRPC of containers";
const why = noPods(what) ?? noPrograms(what, "openssl");
/** Probes every second, with a timeout long enough for a loaded machine. */
const QUICK = { periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 1 };

describe.skipIf(why !== undefined)("probes of servers in containers", { timeout: LONG_MS }, () => {
  let node: PodNode;
  const forwards: Server[] = [];
  beforeAll(async () => {
    node = await PodNode.start();
    // a gRPC probe always uses the pod's own address
    await giveAddresses(node.containerd, "127.0.0.1", "::1");
    node.startDaemon();
  }, LONG_MS);
  afterAll(async () => {
    for (const server of forwards) server.close();
    await node?.stop();
  }, LONG_MS);

  /** Creates the directory that a pod mounts as /served, with these files. */
  const servedOf = (name: string, files: Readonly<Record<string, string | Buffer>>): string => {
    const directory = join(node.dir, `served-${name}`);
    mkdirSync(directory);
    for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text);
    return directory;
  };
  /** Replaces the file atomically, because the server may read it at any moment. */
  const say = (served: string, file: string, word: string): void => {
    writeFileSync(join(served, ".fresh"), word);
    renameSync(join(served, ".fresh"), join(served, file));
  };
  /**
   * Forwards a loopback port, which the probes can reach, to the container's socket: the container's own network is not
   * reachable.
   */
  async function forward(path: string): Promise<number> {
    const port = await freePort();
    const server = createServer((inner) => {
      const outer = connect(path);
      inner.pipe(outer).pipe(inner);
      for (const [one, other] of [[inner, outer] as const, [outer, inner] as const])
        one.on("error", () => other.destroy()).on("close", () => other.destroy());
    });
    await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening));
    forwards.push(server);
    return port;
  }
  const readyOf = (name: string, ready: boolean) =>
    node.daemon.pod(name, ready ? "ready" : "not ready", ({ state, containers }) =>
      containers.every((one) => state === "active" && one.state === "running" && one.ready === ready),
    );

  test("accept HTTPS with a self-signed certificate, and report its faults in the kubelet's words", async () => {
    const [port, plain] = [await freePort(), await freePort()];
    const { key, cert } = selfSigned(2048);
    const served = servedOf("tls", { "key.pem": key, "cert.pem": cert });
    const { volumes, container } = servedContainer(served, "tls", `${port}`);
    const get = (at: number | string, scheme: string) => ({ httpGet: { host: "127.0.0.1", port: at, scheme } });
    const both = {
      readinessProbe: { ...get("web", "HTTPS"), ...QUICK },
      livenessProbe: { ...get("web", "HTTPS"), ...QUICK, failureThreshold: 1000 },
    };
    const ports = [{ name: "web", containerPort: port }];
    node.put("tls", podOf("tls", { volumes, containers: [{ ...container, ports, ...both }] }));
    await readyOf("tls", true);
    const failed = (message: string) => node.daemon.event("tls", "Unhealthy", `Readiness probe ${message}`);
    say(served, "http", "503");
    await failed("failed: HTTP probe failed with statuscode: 503");
    await readyOf("tls", false);
    say(served, "http", "302");
    await node.daemon.event(
      "tls",
      "ProbeWarning",
      "Readiness probe warning: Probe terminated redirects, Response body: kube-probe/1.37",
    );
    await readyOf("tls", true);
    // a probe error counts neither as success nor as failure, so the container stays ready
    say(served, "http", "breaks");
    await failed("errored and resulted in failure state: unexpected EOF");
    await readyOf("tls", true);
    // a TLS probe of a plain HTTP server, and an HTTP probe of a TLS server
    const bare = `mkdir -p /www; httpd -f -p 127.0.0.1:${plain} -h /www & trap 'exit 0' TERM; while :; do sleep 1; done`;
    const wrong = { script: bare, readinessProbe: { ...get(plain, "HTTPS"), ...QUICK } };
    node.put("bare", podOf("bare", { containers: [wrong] }));
    await node.daemon.event(
      "bare",
      "Unhealthy",
      `Readiness probe failed: Get "https://127.0.0.1:${plain}/": http: server gave HTTP response to HTTPS client`,
    );
    node.remove("tls", "bare");
    await node.daemon.gone("tls", "bare");
  });

  test("follow gRPC health by service, and restart the container when it is no longer served", async () => {
    const served = servedOf("rpc", { "grpc-all": "SERVING", "grpc-front": "SERVING" });
    const port = await forward(join(served, "socket"));
    const { volumes, container } = servedContainer(served, "grpc", "/served/socket");
    const probes = {
      readinessProbe: { grpc: { port, service: "front" }, ...QUICK },
      livenessProbe: { grpc: { port }, ...QUICK, failureThreshold: 2 },
      startupProbe: { grpc: { port }, ...QUICK, failureThreshold: 60 },
    };
    const spec = { volumes, hostNetwork: false, containers: [{ ...container, ...probes }] };
    node.put("rpc", podOf("rpc", spec));
    await readyOf("rpc", true);
    const failed = (type: string, message: string) =>
      node.daemon.event("rpc", "Unhealthy", `${type} probe failed: ${message}`);
    say(served, "grpc-front", "NOT_SERVING");
    await failed("Readiness", 'service unhealthy (responded with "NOT_SERVING")');
    await readyOf("rpc", false);
    say(served, "grpc-front", "SERVING");
    await readyOf("rpc", true);
    const rows = await node.daemon.until("its rows", ({ probes: all = [] }) => {
      const its = all.filter(({ pod }) => pod.startsWith("rpc"));
      return its.length === 3 ? its : undefined;
    });
    expect(new Set(rows.map(({ handler }) => handler))).toEqual(new Set(["grpc"]));
    say(served, "grpc-all", "UNKNOWN");
    await failed("Liveness", 'service unhealthy (responded with "UNKNOWN")');
    await node.daemon.event("rpc", "Killing", "Container app failed liveness probe, will be restarted");
    say(served, "grpc-all", "SERVING");
    await until("another instance", async () => {
      const [newest] = await node.containersOf("rpc");
      return (newest?.attempt ?? 0) >= 1 && newest?.state === "running" ? true : undefined;
    });
    await readyOf("rpc", true);
    node.remove("rpc");
    await node.daemon.gone("rpc");
  });

  test("fail for an unknown gRPC service, and for a port that speaks HTTP/1.1", async () => {
    const served = servedOf("strange", { "grpc-all": "SERVING" });
    const [port, plain] = [await forward(join(served, "socket")), await freePort()];
    const { volumes, container } = servedContainer(served, "grpc", "/served/socket");
    const readinessProbe = { grpc: { port, service: "nobody" }, ...QUICK };
    const old = createServer((socket) => {
      socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    forwards.push(old);
    await new Promise<void>((listening) => old.listen(plain, "127.0.0.1", listening));
    const livenessProbe = { grpc: { port: plain }, ...QUICK, timeoutSeconds: 1, failureThreshold: 1000 };
    const spec = { volumes, hostNetwork: false, containers: [{ ...container, readinessProbe, livenessProbe }] };
    node.put("strange", podOf("strange", spec));
    const failed = (type: string, message: string) =>
      node.daemon.event("strange", "Unhealthy", `${type} probe failed: ${message}`);
    await failed("Readiness", "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service");
    await failed(
      "Liveness",
      `timeout: failed to connect service "127.0.0.1:${plain}" within 1s: context deadline exceeded`,
    );
    node.remove("strange");
    await node.daemon.gone("strange");
  });
});
