import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noPrograms } from "../../kit/programs.ts";
import { ownDirectory } from "../containerd/leftovers.ts";
import { type GoProgram, kubernetes, noGoPrograms, pathOf } from "../go-programs.ts";
import { LoggedProcess } from "../logged-process.ts";
import { freePort } from "../pods/port.ts";
import { holds, until } from "../pods/until.ts";
import { releaseAddress, takeAddress } from "./address.ts";
import { ApiClient, type Credentials } from "./api-client.ts";
import {
  CertificateAuthority,
  type CertificateFiles,
  type CertificateSpec,
  serviceAccountKey,
} from "./certificates.ts";

/**
 * Why this machine cannot run a cluster of this version, printed once; undefined: it can, and `programs` are available
 * too.
 */
export function noCluster(what: string, version: string, ...programs: readonly GoProgram[]): string | undefined {
  const missing = noGoPrograms(what, kubernetes("kube-apiserver", version), ...programs);
  if (missing !== undefined || process.getuid?.() === 0) return missing ?? noPrograms(what, "etcd", "openssl", "ip");
  console.warn(`skipped ${what} end to end: only root can give the loopback interface an address`);
  return "not root";
}

const CONTEXT = "test";
/** etcd accepts at most 128 operations and 1.5 MiB per transaction. */
const AT_A_TIME = 100;
const base64 = (bytes: Buffer): string => bytes.toString("base64");
const keyOf = (at: string): string => base64(Buffer.from(`/registry/${at}`));

/**
 * etcd and a kube-apiserver with RBAC, on their own address, which only this machine can reach. There is no scheduler
 * and no controller manager.
 */
export class ControlPlane {
  readonly dir = ownDirectory("cluster");
  readonly address = takeAddress();
  readonly #undo: (() => unknown)[] = [() => releaseAddress(this.address)];
  readonly #authority: CertificateAuthority;
  #etcd = "";
  #command: readonly string[] = [];
  #server: LoggedProcess | undefined;
  #port = 0;
  #admin: ApiClient | undefined;

  private constructor() {
    mkdirSync(join(this.dir, "pki"));
    this.#authority = new CertificateAuthority(join(this.dir, "pki"));
  }

  /** Resolves when the API server is ready. */
  static async start(version: string): Promise<ControlPlane> {
    const plane = new ControlPlane();
    try {
      await plane.#open(version);
    } catch (error) {
      await plane.stop();
      throw error;
    }
    return plane;
  }

  async #open(version: string): Promise<void> {
    this.#etcd = await this.#startEtcd();
    this.#port = await freePort();
    this.#admin = this.client(this.credentialsOf("admin", "/O=system:masters/CN=admin"));
    this.#command = [pathOf(kubernetes("kube-apiserver", version)), ...this.#apiServerArgs()];
    await this.startServer();
    const hasNamespace = async () => holds((await this.admin.ask("GET", "/api/v1/namespaces/default")).status === 200);
    await until("the default namespace", hasNamespace);
  }

  /** Resolves when the API server is ready. */
  async startServer(): Promise<void> {
    const [program = "", ...args] = this.#command;
    this.#server = this.#start(program, args, "kube-apiserver");
    const isReady = async (): Promise<boolean> => (await this.admin.ask("GET", "/readyz")).status === 200;
    await this.#server.ready("the API server", isReady);
  }
  /** Kills only the API server, with SIGKILL. */
  async killServer(): Promise<void> {
    await this.#server?.end("SIGKILL");
  }

  async #startEtcd(): Promise<string> {
    const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`);
    const listen = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer];
    const cluster = ["--name", "one", "--initial-advertise-peer-urls", peer, "--initial-cluster", `one=${peer}`];
    const etcd = this.#start("etcd", ["--data-dir", join(this.dir, "etcd"), ...listen, ...cluster] as string[], "etcd");
    await etcd.ready("etcd", async () => (await fetch(`${client}/health`)).ok);
    return client as string;
  }

  #apiServerArgs(): readonly string[] {
    const names = [`IP:${this.address}`, "IP:10.96.0.1", "DNS:kubernetes.default.svc"];
    const serving = this.certificate("kube-apiserver", { subject: "/CN=kube-apiserver", names });
    const toKubelets = this.certificate("to-kubelets", {
      subject: "/O=system:masters/CN=kube-apiserver-kubelet-client",
    });
    const accountKey = serviceAccountKey(join(this.dir, "pki/service-account.key"));
    return [
      `--etcd-servers=${this.#etcd}`,
      `--bind-address=${this.address}`,
      `--secure-port=${this.#port}`,
      `--tls-cert-file=${serving.cert}`,
      `--tls-private-key-file=${serving.key}`,
      `--client-ca-file=${this.caFile}`,
      `--kubelet-certificate-authority=${this.caFile}`,
      `--kubelet-client-certificate=${toKubelets.cert}`,
      `--kubelet-client-key=${toKubelets.key}`,
      "--kubelet-preferred-address-types=InternalIP",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${accountKey}`,
      `--service-account-signing-key-file=${accountKey}`,
      "--service-cluster-ip-range=10.96.0.0/24",
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      // no controller creates a namespace's default service account, nor the ConfigMap with the CA that its pods would
      // mount
      "--disable-admission-plugins=ServiceAccount",
      // there is only this API server, and no client uses the address of the `kubernetes` service
      "--endpoint-reconciler-type=none",
      // WatchList fails with Debian's etcd 3.4; KWOK uses it for every watch, and would list all pods again and again
      "--feature-gates=WatchList=false",
    ];
  }
  #start(program: string, args: readonly string[], name: string): LoggedProcess {
    const started = new LoggedProcess(program, args, join(this.dir, `${name}.log`));
    this.#undo.push(() => started.end());
    return started;
  }

  /** Stops everything and removes all files, mounts and addresses. */
  async stop(): Promise<void> {
    this.#admin?.close();
    for (const step of this.#undo.toReversed()) await step();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  /** An object as stored in etcd: protobuf, in which a text may be replaced by another text of the same length. */
  async stored(at: string): Promise<Buffer> {
    const { kvs = [] } = await this.#askEtcd<{ kvs?: { value: string }[] }>("range", { key: keyOf(at) });
    const [found] = kvs;
    if (found === undefined) throw new Error(`etcd has no ${at}`);
    return Buffer.from(found.value, "base64");
  }
  /** Writes objects to etcd as an API server does, each under its key below /registry/; null deletes the object. */
  async store(objects: readonly (readonly [at: string, object: Buffer | null])[]): Promise<void> {
    const operationOf = ([at, object]: readonly [string, Buffer | null]): object =>
      object === null
        ? { requestDeleteRange: { key: keyOf(at) } }
        : { requestPut: { key: keyOf(at), value: base64(object) } };
    for (let from = 0; from < objects.length; from += AT_A_TIME) {
      await this.#askEtcd("txn", { success: objects.slice(from, from + AT_A_TIME).map(operationOf) });
    }
  }
  async #askEtcd<T>(what: string, body: object): Promise<T> {
    const done = await fetch(`${this.#etcd}/v3/kv/${what}`, { method: "POST", body: JSON.stringify(body) });
    if (!done.ok) throw new Error(`etcd: ${done.status} ${await done.text()}`);
    return (await done.json()) as T;
  }

  get url(): string {
    return `https://${this.address}:${this.#port}`;
  }
  get caFile(): string {
    return this.#authority.files.cert;
  }
  /** A client with all rights. */
  get admin(): ApiClient {
    if (this.#admin === undefined) throw new Error("the API server has not been started");
    return this.#admin;
  }
  certificate(name: string, spec: CertificateSpec): CertificateFiles {
    return this.#authority.sign(name, spec);
  }
  /** The credentials of a client that the API server identifies by the certificate's subject. */
  credentialsOf(name: string, subject: string): Credentials {
    const { cert, key } = this.certificate(name, { subject });
    return { cert: readFileSync(cert), key: readFileSync(key) };
  }
  client(credentials: Credentials, url = this.url): ApiClient {
    return new ApiClient(url, this.#authority.pem, credentials);
  }

  /** A kubeconfig with one context, `test`; `url`: the address of another server than this one. */
  kubeconfig(name: string, credentials: Credentials, url = this.url): string {
    const user =
      "token" in credentials
        ? { token: credentials.token }
        : { "client-certificate-data": base64(credentials.cert), "client-key-data": base64(credentials.key) };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": CONTEXT,
      clusters: [
        { name: CONTEXT, cluster: { server: url, "certificate-authority-data": base64(this.#authority.pem) } },
      ],
      users: [{ name, user }],
      contexts: [{ name: CONTEXT, context: { cluster: CONTEXT, user: name } }],
    };
    const file = join(this.dir, `${name}.kubeconfig`);
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }
}
