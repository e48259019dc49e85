import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { basename, delimiter, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";
import { openCluster } from "../../api/cluster/cluster.ts";
import { readNodeNames } from "../../api/cluster/read.ts";
import { kubeconfigText, READER, testAuthority, testCluster } from "../kit/cluster.ts";
import { faultOf, okOf, opened } from "./opened.ts";

/** The port of a server that listens until the test ends. */
async function portOf(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

describe("the kubeconfig is found as by kubectl", () => {
  test("by --kubeconfig, by KUBECONFIG, and in the home directory", async () => {
    const { kubeconfig, folder } = await testCluster();
    const file = kubeconfig();
    mkdirSync(join(folder, ".kube"));
    writeFileSync(join(folder, ".kube/config"), readFileSync(file));
    const environments = [{ KUBECONFIG: file }, { HOME: folder }, { KUBECONFIG: `/nowhere${delimiter}${file}` }];
    for (const env of environments) {
      const cluster = okOf(await openCluster({ env }));
      expect(cluster).toMatchObject({ context: "test", namespace: "default" });
      expect(okOf(await readNodeNames(cluster))).toEqual(["n1"]);
      cluster.close();
    }
  });

  test("in several files, where the first definition wins and paths are relative to their own file", async () => {
    const { kubeconfig, folder, api } = await testCluster();
    mkdirSync(join(folder, "ca"));
    writeFileSync(join(folder, "ca/ca.crt"), testAuthority().cert);
    const clusters = [
      { name: "c", cluster: { server: `https://127.0.0.1:${api.port}`, "certificate-authority": "ca.crt" } },
    ];
    writeFileSync(join(folder, "ca/first"), stringify({ kind: "Config", clusters, "current-context": "test" }));
    const second = kubeconfig(
      { token: "reader-token" },
      { cluster: { server: "https://127.0.0.1:1" }, context: { namespace: "shop" } },
    );
    const cluster = okOf(
      await openCluster({ env: { KUBECONFIG: [join(folder, "ca/first"), second].join(delimiter) } }),
    );
    expect(cluster).toMatchObject({ namespace: "shop", server: `https://127.0.0.1:${api.port}` });
    expect(okOf(await readNodeNames(cluster))).toEqual(["n1"]);
    cluster.close();
  });

  test("and a missing one is reported with the places searched", async () => {
    expect(faultOf(await openCluster({ env: { HOME: "/nowhere" } }))).toEqual({
      code: "no-kubeconfig",
      message: "there is no kubeconfig (/nowhere/.kube/config), and this process runs in no pod of a cluster",
      next: "give --kubeconfig FILE, or set KUBECONFIG",
    });
    const fault = faultOf(await openCluster({ kubeconfig: "/nowhere/config", env: {} }));
    expect(fault).toMatchObject({ code: "no-kubeconfig", message: "/nowhere/config: no such file" });
  });
});

describe("a faulty kubeconfig", () => {
  test.each([
    ["no YAML", "token: 's3cr3t\nuser: [", /kubeconfig:\d+:\d+: /],
    ["another document", "kind: Pod\nmetadata: {name: s3cr3t}\n", /is no kubeconfig/],
    ["a list", "- s3cr3t\n", /is no kubeconfig/],
    ["empty", "", /sets no current-context/],
    ["no current-context", "kind: Config\ncontexts: [{name: a, context: {cluster: c}}]\n", /sets no current-context/],
    [
      "no cluster",
      "contexts: [{name: a, context: {cluster: c}}]\ncurrent-context: a\n",
      /context a names the cluster c, which is not there/,
    ],
    [
      "no server",
      "contexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]\ncurrent-context: a\n",
      /context a: clusters\[0\].cluster.server is missing/,
    ],
    [
      "no user",
      "contexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://x'}}]\ncurrent-context: a\n",
      /context a names the user u, which is not there/,
    ],
  ])("with %s is reported without its content", async (_, text, message) => {
    const { folder } = await testCluster();
    const file = join(folder, "kubeconfig");
    writeFileSync(file, text);
    const fault = faultOf(await openCluster({ kubeconfig: file, env: {} }));
    expect(fault.message).toMatch(message);
    expect(JSON.stringify(fault)).not.toContain("s3cr3t");
  });

  test("without the requested context is reported with similar names", async () => {
    const { kubeconfig } = await testCluster();
    const file = kubeconfig();
    const fault = faultOf(await openCluster({ kubeconfig: file, context: "tset", env: {} }));
    expect(fault).toEqual({
      code: "unknown-context",
      message: `${file} has no context tset`,
      next: "is test meant? its contexts are test",
    });
  });

  test("with an auth-provider that kubectl no longer has is reported", async () => {
    const { kubeconfig } = await testCluster();
    const file = kubeconfig({ "auth-provider": { name: "gcp", config: { "cmd-path": "/bin/sh" } } });
    expect(faultOf(await openCluster({ kubeconfig: file, env: {} }))).toMatchObject({ code: "bad-kubeconfig" });
  });

  test("with a missing certificate file is reported when it is needed", async () => {
    const { kubeconfig } = await testCluster();
    const file = kubeconfig({ "client-certificate": "missing.crt", "client-key": "missing.key" });
    const fault = faultOf(await readNodeNames(await opened(file)));
    expect(fault).toMatchObject({
      code: "bad-kubeconfig",
      message: expect.stringContaining("missing.crt: cannot be read"),
    });
  });
});

describe("authentication at the API server", () => {
  const names = async (file: string): Promise<unknown> => readNodeNames(await opened(file));
  const ok = { ok: true, value: ["n1"] };

  test("works with a token, a token file relative to the kubeconfig, and basic credentials", async () => {
    const { kubeconfig, folder, api } = await testCluster();
    writeFileSync(join(folder, "token"), "reader-token\n");
    expect(await names(kubeconfig({ token: "reader-token" }))).toEqual(ok);
    expect(await names(kubeconfig({ tokenFile: "token" }))).toEqual(ok);
    const said: (string | undefined)[] = [];
    api.interruptions.push(({ headers }) => {
      said.push(headers.authorization);
      return false;
    });
    await names(kubeconfig({ username: "jane", password: "words" }));
    expect(said[0]).toBe(`Basic ${Buffer.from("jane:words").toString("base64")}`);
  });

  test("works with a client certificate, also at the kubelet", async () => {
    const { kubeconfig, folder } = await testCluster();
    const { cert, key } = testAuthority().issue(READER.name);
    writeFileSync(join(folder, "client.crt"), cert);
    const file = kubeconfig({
      "client-certificate": "client.crt",
      "client-key-data": Buffer.from(key).toString("base64"),
    });
    const cluster = await opened(file);
    expect(await readNodeNames(cluster)).toEqual(ok);
    const node = okOf(await cluster.api.get({ resource: "nodes" }, "n1"));
    expect(await cluster.kubelets.read(node, "configz")).toMatchObject({ ok: true });
  });

  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const idToken = (inSeconds: number, more: object = {}): string =>
    `${part({ alg: "RS256" })}.${part({ exp: Math.floor(Date.now() / 1000) + inSeconds, ...more })}.x`;

  test("refreshes an expired OIDC token, with one request to the provider", async () => {
    const { kubeconfig, users } = await testCluster();
    const asked: string[] = [];
    const provider = createTlsServer(testAuthority().issue("issuer"), (request, response) => {
      asked.push(String(request.url));
      const issuer = `https://127.0.0.1:${port}`;
      const claims = { iss: issuer, aud: "c", sub: "jane", iat: Math.floor(Date.now() / 1000) };
      const token = idToken(3600, claims);
      users[token] = READER;
      const words = { access_token: "a", token_type: "bearer", expires_in: 3600, id_token: token, refresh_token: "r2" };
      const isToken = request.url === "/token";
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(isToken ? words : { issuer, token_endpoint: `${issuer}/token` }));
    });
    const port = await portOf(provider);
    const config = {
      "id-token": idToken(-10),
      "refresh-token": "r1",
      "client-id": "c",
      "idp-issuer-url": `https://127.0.0.1:${port}`,
      "idp-certificate-authority-data": Buffer.from(testAuthority().cert).toString("base64"),
    };
    const cluster = await opened(kubeconfig({ "auth-provider": { name: "oidc", config } }));
    expect(await readNodeNames(cluster)).toEqual(ok);
    expect(await readNodeNames(cluster)).toEqual(ok);
    expect(asked.filter((path) => path === "/token")).toHaveLength(1);
  });

  test("uses an OIDC token that is still valid", async () => {
    const { kubeconfig, users } = await testCluster();
    const token = idToken(3600);
    users[token] = READER;
    const provider = { name: "oidc", config: { "id-token": token, "client-id": "c", "idp-issuer-url": "https://i" } };
    expect(await names(kubeconfig({ "auth-provider": provider }))).toEqual(ok);
  });

  test("impersonates at the API server only, as kubelets do not support it", async () => {
    const { kubeconfig, api, kubelet } = await testCluster();
    const seen: unknown[] = [];
    api.interruptions.push(({ headers }) => {
      seen.push([headers["impersonate-user"], headers["impersonate-group"], headers["impersonate-uid"]]);
      return false;
    });
    const user = { token: "reader-token", as: "jane", "as-groups": ["ops", "dev"], "as-uid": "7" };
    const cluster = await opened(kubeconfig(user));
    const node = okOf(await cluster.api.get({ resource: "nodes" }, "n1"));
    expect(seen).toEqual([["jane", "ops, dev", "7"]]);
    expect(await cluster.kubelets.read(node, "configz")).toMatchObject({ error: { code: "forbidden" } });
    expect(kubelet.requests).toEqual([]);
  });

  test("uses the proxy that the cluster names", async () => {
    const { kubeconfig } = await testCluster();
    const proxied: string[] = [];
    const proxy = createServer();
    proxy.on("connect", (request, client) => {
      proxied.push(String(request.url));
      const [host, port] = String(request.url).split(":");
      const server = connect(Number(port), host, () => client.write("HTTP/1.1 200 OK\r\n\r\n"));
      server.pipe(client).pipe(server);
      for (const socket of [client, server]) socket.on("error", () => {});
    });
    const file = kubeconfig(undefined, { cluster: { "proxy-url": `http://127.0.0.1:${await portOf(proxy)}` } });
    expect(await names(file)).toEqual(ok);
    expect(proxied).toHaveLength(1);
  });

  test("sends no credentials over an unencrypted connection", async () => {
    const { kubeconfig } = await testCluster();
    const said: (string | undefined)[] = [];
    const server = createServer(({ headers }, response) => {
      said.push(headers.authorization);
      response.end('{"kind":"NodeList","items":null,"metadata":{"resourceVersion":"1"}}');
    });
    const cluster = { server: `http://127.0.0.1:${await portOf(server)}`, "certificate-authority-data": undefined };
    expect(await names(kubeconfig(undefined, { cluster }))).toEqual({ ok: true, value: [] });
    expect(said).toEqual([undefined]);
  });

  test("with an expired token is refused with advice", async () => {
    const { kubeconfig } = await testCluster();
    const fault = faultOf(await readNodeNames(await opened(kubeconfig({ token: "old" }))));
    expect(fault).toMatchObject({ code: "unauthorized", next: expect.stringContaining("log in again") });
  });

  test("with an expired token reads the token file again", async () => {
    const { kubeconfig, api, users, kubelet } = await testCluster();
    const file = kubeconfig();
    const cluster = await opened(file);
    const node = okOf(await cluster.api.get({ resource: "nodes" }, "n1"));
    delete users["reader-token"];
    users["next-token"] = READER;
    writeFileSync(file, kubeconfigText(api.port, { token: "next-token" }, {}));
    expect(await readNodeNames(cluster)).toEqual(ok);
    delete users["next-token"];
    users["third-token"] = READER;
    writeFileSync(file, kubeconfigText(api.port, { token: "third-token" }, {}));
    expect(await cluster.kubelets.read(node, "stats")).toMatchObject({ ok: true });
    expect(kubelet.requests).toEqual(["/stats/summary", "/stats/summary"]);
  });
});

describe("an exec credential plugin", () => {
  const plugin = (folder: string, script: string): string => {
    const file = join(folder, "plugin");
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
    return file;
  };
  const credential = (status: object): string =>
    JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status });
  const exec = (command: string, more: object = {}) => ({
    exec: {
      apiVersion: "client.authentication.k8s.io/v1",
      command,
      args: ["get-token"],
      interactiveMode: "Never",
      ...more,
    },
  });

  test("gives a token, is found relative to the kubeconfig, and gets kubectl's input", async () => {
    const { kubeconfig, folder } = await testCluster();
    const script = `echo "$1 $PROFILE $KUBERNETES_EXEC_INFO" >> ${folder}/calls; echo '${credential({ token: "reader-token" })}'`;
    const file = plugin(folder, script);
    const cluster = await opened(kubeconfig(exec(`./${basename(file)}`, { env: [{ name: "PROFILE", value: "p" }] })));
    expect(okOf(await readNodeNames(cluster))).toEqual(["n1"]);
    expect(okOf(await readNodeNames(cluster))).toEqual(["n1"]);
    const info =
      '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}';
    // a token without an expiry time is kept
    expect(readFileSync(join(folder, "calls"), "utf8")).toBe(`get-token p ${info}\n`);
  });

  test("gives a client certificate", async () => {
    const { kubeconfig, folder } = await testCluster();
    const { cert, key } = testAuthority().issue(READER.name);
    writeFileSync(join(folder, "out"), credential({ clientCertificateData: cert, clientKeyData: key }));
    const cluster = await opened(kubeconfig(exec(plugin(folder, `cat ${folder}/out`))));
    expect(okOf(await readNodeNames(cluster))).toEqual(["n1"]);
  });

  test("is run again once its token has expired or was refused", async () => {
    const { kubeconfig, folder, users } = await testCluster();
    const command = plugin(folder, `echo x >> ${folder}/calls; cat ${folder}/out`);
    const calls = (): number => readFileSync(join(folder, "calls"), "utf8").length / 2;
    const answer = (token: string, expirationTimestamp?: string): void =>
      writeFileSync(join(folder, "out"), credential({ token, expirationTimestamp }));
    answer("reader-token", new Date(Date.now() - 1000).toISOString());
    const cluster = await opened(kubeconfig(exec(command)));
    okOf(await readNodeNames(cluster));
    answer("reader-token");
    okOf(await readNodeNames(cluster));
    okOf(await readNodeNames(cluster));
    expect(calls()).toBe(2);
    delete users["reader-token"];
    users["next-token"] = READER;
    answer("next-token");
    expect(okOf(await readNodeNames(cluster))).toEqual(["n1"]);
    expect(calls()).toBe(3);
  });

  test.each([
    [
      "that fails",
      "echo 'not logged in: run sso login' >&2; exit 1",
      /gave no credentials: not logged in: run sso login/,
    ],
    ["that says nothing", "exit 3", /gave no credentials: it ended without a message/],
    ["that prints no JSON", "echo hello", /gave no credentials: .*JSON/],
    ["that prints something else", "echo '{}'", /gave no credentials/],
  ])("%s is reported with its message", async (_, script, message) => {
    const { kubeconfig, folder } = await testCluster();
    const fault = faultOf(await readNodeNames(await opened(kubeconfig(exec(plugin(folder, script))))));
    expect(fault).toMatchObject({ code: "no-credentials", message: expect.stringMatching(message) });
  });

  test("that is not installed is reported with its install hint", async () => {
    const { kubeconfig } = await testCluster();
    const file = kubeconfig(exec("no-such-plugin", { installHint: "Install it from the cloud's site\n" }));
    expect(faultOf(await readNodeNames(await opened(file)))).toEqual({
      code: "no-credentials",
      message: "context test: the plugin no-such-plugin is not on this machine",
      next: "Install it from the cloud's site",
    });
  });
});
