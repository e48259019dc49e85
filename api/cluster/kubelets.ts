import * as https from "node:https";
import type { SecureContext } from "node:tls";
import pLimit, { type LimitFunction } from "p-limit";
import { LIMITS } from "../base/limits.ts";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { withoutPodSecrets, withoutSecretSettings } from "../model/redact.ts";
import { NEWEST } from "../profiles/index.ts";
import type { ClusterConnection, Credentials } from "./access.ts";
import { type ApiServer, answerFault, jsonIn } from "./api-server.ts";
import { type AccessRule, type ClusterFault, clusterFault } from "./fault.ts";
import { ask, type HttpAnswer } from "./http.ts";

export interface KubeletOptions {
  /** Read through the API server, which needs the permission nodes/proxy, instead of the kubelet's own address. */
  readonly proxy?: boolean | undefined;
  /** Accept any certificate of a kubelet. Whoever listens at its address then gets the caller's token. */
  readonly insecureTls?: boolean | undefined;
  /** For one response. */
  readonly timeoutMs?: number | undefined;
  /** The most requests to kubelets at a time. */
  readonly atATime?: number | undefined;
}

/**
 * The kubelet's endpoints, the permission that each needs with fine-grained authorization (1.33 and newer), and the member of a
 * NodeSnapshot that its response becomes.
 */
const PATHS = {
  configz: { path: "/configz", resource: "nodes/configz", member: "kubeletConfiguration" },
  stats: { path: "/stats/summary", resource: "nodes/stats", member: "stats" },
  pods: { path: "/pods", resource: "nodes/pods", member: "pods" },
} as const;
export type KubeletPart = keyof typeof PATHS;

const TIMEOUT_MS = 10_000;
const AT_A_TIME = 16;
/** A larger snapshot is never accepted for a decision. */
const MAX_BYTES = LIMITS.bodyBytes;
/** A kubelet that failed n times in a row is tried again after 2^n times the first of these, at most the last. */
const BACK_OFF_MS = [5_000, 300_000] as const;

interface KubeletBackoff {
  readonly times: number;
  readonly untilMs: number;
  readonly fault: ClusterFault;
}

/** Sends requests to kubelets, a limited number at a time; one that fails is not contacted for a growing time. */
export class Kubelets {
  readonly #access: ClusterConnection;
  readonly #api: ApiServer;
  readonly #options: KubeletOptions;
  readonly #limit: LimitFunction;
  readonly #failing = new Map<string, KubeletBackoff>();
  #connections: { readonly secureContext: SecureContext | undefined; readonly agent: https.Agent } | undefined;

  constructor(access: ClusterConnection, api: ApiServer, options: KubeletOptions) {
    this.#access = access;
    this.#api = api;
    this.#options = options;
    this.#limit = pLimit(options.atATime ?? AT_A_TIME);
  }

  /**
   * One document of the node's kubelet as returned, without secrets. Errors: those of the connection, untrusted, unauthorized,
   * forbidden (with the rule), too-large, not-json, and unexpected-answer if it does not have the form of the part.
   */
  async read(node: Fields, part: KubeletPart, signal?: AbortSignal): Promise<Result<unknown, ClusterFault>> {
    const name = String(fieldsOf(node["metadata"])["name"]);
    const failing = this.#failing.get(name);
    if (failing !== undefined && performance.now() < failing.untilMs) return { ok: false, error: failing.fault };
    const read = await this.#limit(() =>
      this.#options.proxy === true ? this.#overProxy(name, part, signal) : this.#directly(node, name, part, signal),
    );
    const checked = read.ok ? asPart(read.value, name, part) : read;
    this.#remember(name, checked);
    return checked.ok ? ok(cleaned(checked.value, part)) : checked;
  }

  forget(name: string): void {
    this.#failing.delete(name);
  }
  close(): void {
    this.#connections?.agent.destroy();
  }

  /** Remembers harmful failures. A missing permission will still be missing in five seconds, but costs the kubelet nothing. */
  #remember(name: string, read: Result<unknown, ClusterFault>): void {
    if (read.ok || !HARMFUL.has(read.error.code)) {
      this.#failing.delete(name);
      return;
    }
    const before = this.#failing.get(name);
    const nowMs = performance.now();
    // another request of the same visit has already failed
    if (before !== undefined && nowMs < before.untilMs) return;
    const times = (before?.times ?? -1) + 1;
    const [first, most] = BACK_OFF_MS;
    this.#failing.set(name, { times, untilMs: nowMs + Math.min(most, first * 2 ** times), fault: read.error });
  }

  #overProxy(name: string, part: KubeletPart, signal: AbortSignal | undefined) {
    const path = `/api/v1/nodes/${encodeURIComponent(name)}/proxy${PATHS[part].path}`;
    const limits = { timeoutMs: this.#options.timeoutMs ?? TIMEOUT_MS, maxBytes: MAX_BYTES };
    return this.#api.read(path, {}, { resource: "nodes/proxy", verbs: ["get"] }, signal, limits);
  }

  async #directly(
    node: Fields,
    name: string,
    part: KubeletPart,
    signal: AbortSignal | undefined,
  ): Promise<Result<unknown, ClusterFault>> {
    if (this.#access.impersonates)
      return clusterFault("forbidden", `the kubelet of ${name} does not support impersonation`, ASK_PROXY);
    const address = addressOf(node);
    if (address === undefined)
      return clusterFault("unreachable", `node ${name} reports no address of its kubelet`, ASK_PROXY);
    const url = new URL(`https://${address}${PATHS[part].path}`);
    const timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS;
    const limits = { timeoutMs, maxBytes: MAX_BYTES, signal, authority: KUBELET_AUTHORITY };
    const answer = await this.#access.authorized((credentials) => {
      const agent = this.#agentFor(credentials);
      return ask({ url, headers: credentials.headers, agent, ...limits });
    });
    return this.#answered(answer, url, part);
  }

  #answered(answer: Result<HttpAnswer, ClusterFault>, url: URL, part: KubeletPart): Result<unknown, ClusterFault> {
    if (!answer.ok) return answer;
    if (answer.value.status === 200) return jsonIn(answer.value, url);
    return answerFault(answer.value, url, ruleOf(part, answer.value));
  }

  #agentFor({ secureContext }: Credentials): https.Agent {
    if (this.#connections?.secureContext !== secureContext) this.#connections = undefined;
    const rejectUnauthorized = this.#options.insecureTls !== true;
    const options = { secureContext, rejectUnauthorized, keepAlive: true, maxFreeSockets: 1, timeout: 30_000 };
    this.#connections ??= { secureContext, agent: new https.Agent(options) };
    return this.#connections.agent;
  }
}

const HARMFUL: ReadonlySet<string> = new Set([
  "unreachable",
  "timed-out",
  "too-large",
  "not-json",
  "unexpected-answer",
]);

const ASK_PROXY =
  "ask through the API server with --proxy, which requires the right nodes/proxy: it also allows exec in every container of the node";
const KUBELET_AUTHORITY = `let the cluster sign the certificates of its kubelets (serverTLSBootstrap: true in the KubeletConfiguration, and approve their requests), or accept any certificate with --kubelet-insecure-tls: any server at that address then gets your credentials; or ${ASK_PROXY}`;

/** A kubelet older than 1.33 knows only nodes/proxy for most of its endpoints, and says so. kubelet 1.36: kubeletRequestAttributes. */
function ruleOf(part: KubeletPart, { text }: HttpAnswer): AccessRule {
  const { resource } = PATHS[part];
  const named = /subresources?(?:\(s\))?=\[?([^\])]*)/.exec(text)?.[1] ?? "";
  const isOld = named.includes("proxy") && !named.includes(resource.replace("nodes/", ""));
  return { resource: isOld ? "nodes/proxy" : resource, verbs: ["get"] };
}

/** The types of address to use, by preference: kubelet serving certificates contain the addresses of the node's status. */
const ADDRESS_TYPES = ["InternalIP", "InternalDNS", "ExternalIP", "Hostname"];
function addressOf(node: Fields): string | undefined {
  const { addresses, daemonEndpoints } = fieldsOf(node["status"]);
  const list = (Array.isArray(addresses) ? (addresses as readonly unknown[]) : []).filter(isObject);
  const { Port } = fieldsOf(fieldsOf(daemonEndpoints)["kubeletEndpoint"]);
  const port = typeof Port === "number" && Port > 0 ? Port : NEWEST.defaults.port;
  const found = ADDRESS_TYPES.map((type) => list.find((one) => one["type"] === type)?.["address"]).find(
    (address) => typeof address === "string" && /^[\w.:-]+$/.test(address),
  ) as string | undefined;
  if (found === undefined) return undefined;
  return `${found.includes(":") ? `[${found}]` : found}:${port}`;
}

/** Validates a part: an invalid one would make the node's whole snapshot invalid. */
function asPart(value: unknown, name: string, part: KubeletPart): Result<unknown, ClusterFault> {
  const { path, member } = PATHS[part];
  // null would count as absent
  const decoded = decodeSnapshot({ node: { metadata: { name } }, [member]: value ?? "null" });
  if (decoded.ok) return ok(value);
  const [first, ...more] = decoded.error;
  const said = `${first?.path}: ${first?.message}${more.length === 0 ? "" : ` (and ${more.length} more)`}`;
  return clusterFault(
    "unexpected-answer",
    `the kubelet of ${name} answers ${path} with invalid content: ${said}`,
    "check which server answers there",
  );
}

function cleaned(value: unknown, part: KubeletPart): unknown {
  if (part === "configz") return withoutSecretSettings(value);
  if (part !== "pods" || !isObject(value)) return value;
  const { items } = value;
  const pods = Array.isArray(items) ? (items as readonly unknown[]) : [];
  return { ...value, items: pods.map((pod) => (isObject(pod) ? withoutPodSecrets(pod) : pod)) };
}
