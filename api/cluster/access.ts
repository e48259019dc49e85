import * as http from "node:http";
import * as https from "node:https";
import { createSecureContext, type SecureContext } from "node:tls";
import { ok, type Result } from "../base/result.ts";
import { type ClusterFault, clusterFault } from "./fault.ts";
import type { Headers, HttpAnswer } from "./http.ts";
import type { ExecAuth } from "./kube-client.ts";
import { type Kubeconfig, type KubeconfigOptions, loadKubeconfig, spawnPlugin } from "./kubeconfig.ts";

/** The caller's current credentials, as one request needs them. */
export interface Credentials {
  readonly headers: Headers;
  /** Connections to the API server. */
  readonly agent: http.Agent;
  /** Authority and client certificate; the same object as long as they do not change. Used for connections to kubelets too. */
  readonly secureContext: SecureContext | undefined;
  /** How often the credentials were renewed. */
  readonly renewals: number;
}

/** The most connections to one server. */
const CONNECTIONS = { keepAlive: true, maxSockets: 64, maxFreeSockets: 8, timeout: 60_000 } as const;
const USER_AGENT = "nodewise";

/** The caller's access to a cluster: the API server's address, and credentials that are renewed when they expire. */
export class ClusterConnection {
  readonly #options: KubeconfigOptions;
  #kubeconfig: Kubeconfig;
  #execAuth: ExecAuth | undefined;
  #connections:
    | { readonly key: string; readonly secureContext?: SecureContext; readonly agent: http.Agent }
    | undefined;
  #reading: Promise<Result<Credentials, ClusterFault>> | undefined;
  #renewing: Promise<Result<void, ClusterFault>> | undefined;
  #renewals = 0;

  private constructor(options: KubeconfigOptions, kubeconfig: Kubeconfig) {
    this.#options = options;
    this.#kubeconfig = kubeconfig;
  }

  /** Errors: those of the kubeconfig. No request is sent yet. */
  static async open(options: KubeconfigOptions): Promise<Result<ClusterConnection, ClusterFault>> {
    const loaded = await loadKubeconfig(options);
    return loaded.ok ? ok(new ClusterConnection(options, loaded.value)) : loaded;
  }

  get context(): string {
    return this.#kubeconfig.context;
  }
  get namespace(): string {
    return this.#kubeconfig.namespace;
  }
  /** The address of the API server, without a trailing slash. */
  get server(): string {
    return this.#kubeconfig.config.getCurrentCluster()?.server ?? "";
  }
  /** Whether the user acts as another. Kubelets do not know impersonation: requests to them are made as the user itself. */
  get impersonates(): boolean {
    return Object.keys(this.#kubeconfig.impersonation).length > 0;
  }

  /** Concurrent requests run a plugin once. Errors: bad-kubeconfig (a certificate's file), no-credentials. */
  #credentials(): Promise<Result<Credentials, ClusterFault>> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<Result<Credentials, ClusterFault>> {
    const renewals = this.#renewals;
    const { config, exec, idToken, impersonation } = this.#kubeconfig;
    const isSecure = this.server.startsWith("https:");
    // as with kubectl, no secret is sent over an unencrypted connection
    if (!isSecure) {
      if (this.#connections?.key !== "http") this.#connections = { key: "http", agent: new http.Agent(CONNECTIONS) };
      const { agent } = this.#connections;
      return ok({ headers: headersOf({}), agent, secureContext: undefined, renewals });
    }
    const options: https.RequestOptions = { headers: {} };
    try {
      await config.applyToHTTPSOptions(options);
      if (exec !== undefined) await this.#applyPlugin(exec, options);
      if (idToken !== undefined) options.headers = { Authorization: `Bearer ${await idToken.current()}` };
    } catch (error) {
      return credentialsFault(error, exec, this.#kubeconfig);
    }
    const headers: Record<string, string | readonly string[]> = { ...(options.headers as Headers), ...impersonation };
    // client-node keeps the newline of a token's file, which a header cannot contain
    if (typeof headers["Authorization"] === "string") headers["Authorization"] = headers["Authorization"].trim();
    if (typeof options.auth === "string") {
      headers["Authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
    }
    try {
      const { secureContext, agent } = this.#connectionsBy(options);
      const isProxied = config.getCurrentCluster()?.proxyUrl !== undefined;
      return ok({
        headers: headersOf(headers),
        agent: isProxied ? (options.agent as http.Agent) : agent,
        secureContext,
        renewals,
      });
    } catch (error) {
      return certificateFileFault(error, this.#kubeconfig);
    }
  }

  /** Sends with the current credentials, and once more with new ones if those were refused. */
  async authorized<A extends HttpAnswer | null>(
    send: (credentials: Credentials) => Promise<Result<A, ClusterFault>>,
  ): Promise<Result<A, ClusterFault>> {
    for (let isFirst = true; ; isFirst = false) {
      const credentials = await this.#credentials();
      if (!credentials.ok) return credentials;
      const answer = await send(credentials.value);
      if (!answer.ok || answer.value?.status !== 401 || !isFirst) return answer;
      const renewed = await this.#renew(credentials.value);
      if (!renewed.ok) return renewed;
    }
  }

  /** After a 401, reads the files again and runs the plugin again: once for all requests that used these credentials. */
  #renew(refused: Credentials): Promise<Result<void, ClusterFault>> {
    if (refused.renewals !== this.#renewals) return Promise.resolve(ok(undefined));
    this.#renewing ??= this.#reload().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #reload(): Promise<Result<void, ClusterFault>> {
    const loaded = await loadKubeconfig(this.#options);
    if (!loaded.ok) return loaded;
    this.#kubeconfig = loaded.value;
    this.#execAuth = undefined;
    this.#reading = undefined;
    this.#renewals++;
    return ok(undefined);
  }

  close(): void {
    this.#connections?.agent.destroy();
  }

  async #applyPlugin(exec: NonNullable<Kubeconfig["exec"]>, options: https.RequestOptions): Promise<void> {
    if (this.#execAuth === undefined) {
      const { ExecAuth } = await import("./kube-client.ts");
      this.#execAuth = new ExecAuth();
      Object.assign(this.#execAuth, { execFn: spawnPlugin });
    }
    await this.#execAuth.applyAuthentication({ name: "user", exec }, options);
  }

  /** One secure context for all connections: otherwise each would parse the authorities and keep a copy. Throws if they are no PEM. */
  #connectionsBy({ ca, cert, key, servername, rejectUnauthorized }: https.RequestOptions) {
    const name = [ca, cert, key, servername, rejectUnauthorized].map(String).join();
    if (this.#connections?.key === name) return this.#connections;
    const secureContext = createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) });
    const agent = new https.Agent({
      ...CONNECTIONS,
      secureContext,
      ...(servername !== undefined && { servername }),
      ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    });
    // requests under way keep the old agent's connections until they end
    this.#connections = { key: name, secureContext, agent };
    return this.#connections;
  }
}

const headersOf = (headers: Headers): Headers => ({
  ...headers,
  Accept: "application/json",
  "User-Agent": USER_AGENT,
});

function credentialsFault(error: unknown, exec: Kubeconfig["exec"], { context }: Kubeconfig) {
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (exec !== undefined) {
    const command = String(exec["command"]);
    const hint = typeof exec["installHint"] === "string" ? exec["installHint"].trim() : "";
    if (code === "ENOENT") {
      const next = hint === "" ? "install it, or correct the kubeconfig" : hint;
      return clusterFault("no-credentials", `context ${context}: the plugin ${command} is not on this machine`, next);
    }
    const said = message.trim() === "" ? "it ended without a message" : message.trim().split("\n").slice(-3).join(" ");
    const next = "run `kubectl get nodes` once: it shows what the plugin asks for";
    return clusterFault(
      "no-credentials",
      `context ${context}: the plugin ${command} gave no credentials: ${said}`,
      next,
    );
  }
  if (code === "ENOENT" || code === "EACCES") {
    return clusterFault(
      "bad-kubeconfig",
      `context ${context}: ${path}: cannot be read (${code})`,
      "correct the kubeconfig",
    );
  }
  const next = "log in again, as for kubectl";
  return clusterFault("no-credentials", `context ${context}: no credentials: ${message}`, next);
}

function certificateFileFault(error: unknown, { context }: Kubeconfig) {
  const { message } = error as Error;
  return clusterFault(
    "bad-kubeconfig",
    `context ${context}: its certificate-authority, client-certificate or client-key is no PEM of one: ${message}`,
    "correct the kubeconfig",
  );
}
