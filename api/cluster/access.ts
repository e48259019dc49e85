import * as http from "node:http";
import * as https from "node:https";
import { ok, type Result } from "../model/result.ts";
import { type ClusterFault, clusterFault } from "./fault.ts";
import type { Headers } from "./http.ts";
import type { ExecAuth } from "./kube-client.ts";
import { type Kubeconfig, type KubeconfigOptions, loadKubeconfig, spawnPlugin } from "./kubeconfig.ts";

/** Everything that one request needs of the caller's credentials, as they are now. */
export interface Credentials {
  readonly headers: Headers;
  /** Connections to the API server. */
  readonly agent: http.Agent;
  /** The same authority and client certificate, for connections to kubelets; `rejectUnauthorized` is not set. */
  readonly tls: Pick<https.AgentOptions, "ca" | "cert" | "key">;
  /** Differs whenever `tls` does. */
  readonly tlsKey: string;
}

/** So many connections at a time are kept to one server. */
const CONNECTIONS = { keepAlive: true, maxSockets: 64, maxFreeSockets: 8, timeout: 60_000 } as const;
const USER_AGENT = "nodewise";

/** The caller's way into a cluster: where the API server is, and credentials that are renewed when they have run out. */
export class Access {
  readonly #options: KubeconfigOptions;
  #kubeconfig: Kubeconfig;
  #execAuth: ExecAuth | undefined;
  #agent: { readonly key: string; readonly agent: http.Agent } | undefined;

  private constructor(options: KubeconfigOptions, kubeconfig: Kubeconfig) {
    this.#options = options;
    this.#kubeconfig = kubeconfig;
  }

  /** Errors: those of the kubeconfig. Nothing is asked of the cluster yet. */
  static async open(options: KubeconfigOptions): Promise<Result<Access, ClusterFault>> {
    const loaded = await loadKubeconfig(options);
    return loaded.ok ? ok(new Access(options, loaded.value)) : loaded;
  }

  get context(): string {
    return this.#kubeconfig.context;
  }
  get namespace(): string {
    return this.#kubeconfig.namespace;
  }
  /** The address of the API server, without a slash at its end. */
  get server(): string {
    return this.#kubeconfig.config.getCurrentCluster()?.server ?? "";
  }
  /** Kubelets know nothing of impersonation: what they are asked is asked as the user itself. */
  get impersonates(): boolean {
    return Object.keys(this.#kubeconfig.impersonation).length > 0;
  }

  /** Errors: bad-kubeconfig (a certificate's file), no-credentials. */
  async credentials(): Promise<Result<Credentials, ClusterFault>> {
    const { config, exec, idToken, impersonation } = this.#kubeconfig;
    const isSecure = this.server.startsWith("https:");
    // as kubectl does, nothing secret is sent over a connection that anybody can read
    if (!isSecure) return ok({ headers: headersOf({}), agent: this.#agentFor("http", {}), tls: {}, tlsKey: "" });
    const options: https.RequestOptions = { headers: {} };
    try {
      await config.applyToHTTPSOptions(options);
      if (exec !== undefined) await this.#applyPlugin(exec, options);
      if (idToken !== undefined) options.headers = { Authorization: `Bearer ${await idToken.current()}` };
    } catch (error) {
      return credentialsFault(error, exec, this.#kubeconfig);
    }
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const headers: Record<string, string | readonly string[]> = { ...(options.headers as Headers), ...impersonation };
    // client-node keeps the line end of a token's file, which no header can hold
    if (typeof headers["Authorization"] === "string") headers["Authorization"] = headers["Authorization"].trim();
    if (typeof options.auth === "string") {
      headers["Authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
    }
    const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
    const tlsKey = Object.values(tls).map(String).join();
    const isProxied = config.getCurrentCluster()?.proxyUrl !== undefined;
    const agent = isProxied
      ? (options.agent as http.Agent)
      : this.#agentFor(tlsKey, {
          ...tls,
          ...(servername !== undefined && { servername }),
          ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
        });
    return ok({ headers: headersOf(headers), agent, tls, tlsKey });
  }

  /** After an answer of 401: the files are read again, and the plugin is asked again. */
  async renew(): Promise<Result<void, ClusterFault>> {
    const loaded = await loadKubeconfig(this.#options);
    if (!loaded.ok) return loaded;
    this.#kubeconfig = loaded.value;
    this.#execAuth = undefined;
    return ok(undefined);
  }

  close(): void {
    this.#agent?.agent.destroy();
  }

  async #applyPlugin(exec: NonNullable<Kubeconfig["exec"]>, options: https.RequestOptions): Promise<void> {
    if (this.#execAuth === undefined) {
      const { ExecAuth } = await import("./kube-client.ts");
      this.#execAuth = new ExecAuth();
      Object.assign(this.#execAuth, { execFn: spawnPlugin });
    }
    await this.#execAuth.applyAuthentication({ name: "user", exec }, options);
  }

  #agentFor(key: string, options: https.AgentOptions): http.Agent {
    if (this.#agent?.key === key) return this.#agent.agent;
    const agent = key === "http" ? new http.Agent(CONNECTIONS) : new https.Agent({ ...CONNECTIONS, ...options });
    // requests that are under way keep the old one's connections until they end
    this.#agent = { key, agent };
    return agent;
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
    const said = message.trim() === "" ? "it ended without a word" : message.trim().split("\n").slice(-3).join(" ");
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
