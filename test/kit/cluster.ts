import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { stringify } from "yaml";
import { type Labels, parseLabelSelector, selects } from "../../api/service/label-selector.ts";
import { type Authority, authority, type KeyPair } from "./certificates.ts";
import { capturedText } from "./real-node.ts";
import { scratchFolder } from "./scratch.ts";

type Fields = Record<string, unknown>;
interface Meta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
}
export interface ApiObject extends Fields {
  readonly kind?: string;
  readonly metadata: Meta & Fields;
}
const KINDS = {
  nodes: "Node",
  pods: "Pod",
  events: "Event",
  resourceclaims: "ResourceClaim",
  resourceslices: "ResourceSlice",
  deviceclasses: "DeviceClass",
} as const;
export type Resource = keyof typeof KINDS;
const DRA: ReadonlySet<string> = new Set(["resourceclaims", "resourceslices", "deviceclasses"]);
const groupOf = (resource: string): string => (DRA.has(resource) ? "resource.k8s.io" : "");
const versionOf = (resource: string): string => (DRA.has(resource) ? "resource.k8s.io/v1" : "v1");
const PATH =
  /^\/(?:api|apis\/(?<group>resource\.k8s\.io))\/v1(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<resource>\w+)(?:\/(?<name>[^/]+))?$/;

/** The callers by their tokens, and the rights of each: `list pods`, `get nodes/configz`; `*`: everything. */
export type Users = Record<string, { readonly name: string; readonly may: readonly string[] }>;

/** Answers a request instead of the server; false: the server answers. */
export type Interruption = (request: IncomingMessage, response: ServerResponse, url: URL) => boolean;

/** A captured document, with loopback as the node's address. */
const real = (file: string): string => capturedText(file).replaceAll("10.88.0.1", "127.0.0.1");

let clusterAuthority: Authority | undefined;
/** The authority of all test clusters. It is made once, because making keys takes a while. */
export function testAuthority(): Authority {
  if (clusterAuthority !== undefined) return clusterAuthority;
  const made = authority("test-cluster");
  const pairs = new Map<string, KeyPair>();
  const issue = (name: string): KeyPair => {
    const pair = pairs.get(name) ?? made.issue(name);
    pairs.set(name, pair);
    return pair;
  };
  clusterAuthority = { ...made, issue };
  return clusterAuthority;
}

/** Undefined: the request gets no answer. */
type Answered = ServerResponse | undefined;

abstract class TestServer {
  readonly users: Users;
  readonly requests: string[] = [];
  /** These may answer a request before the server does. */
  readonly interruptions: Interruption[] = [];
  readonly server: Server;
  port = 0;

  constructor(users: Users, pair: KeyPair) {
    this.users = users;
    this.server = createServer({ ...pair, ca: testAuthority().cert, requestCert: true, rejectUnauthorized: false });
    this.server.on("request", (request, response) => this.#take(request, response));
  }

  async listen(): Promise<this> {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done));
    this.port = (this.server.address() as AddressInfo).port;
    return this;
  }
  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", `https://127.0.0.1:${this.port}`);
    this.requests.push(url.pathname + url.search);
    if (this.interruptions.some((one) => one(request, response, url))) return;
    this.answer(request, response, url);
  }

  protected abstract answer(request: IncomingMessage, response: ServerResponse, url: URL): Answered;

  /** Undefined: the server does not know the caller. */
  protected userOf(request: IncomingMessage): { readonly name: string; readonly may: readonly string[] } | undefined {
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? "")?.[1];
    if (token !== undefined) return this.users[token];
    const { subject } = (
      request.socket as unknown as { getPeerCertificate(): { subject?: { CN: string } } }
    ).getPeerCertificate();
    return subject === undefined ? undefined : Object.values(this.users).find(({ name }) => name === subject.CN);
  }
}

const may = (user: { readonly may: readonly string[] }, what: string): boolean =>
  user.may.includes("*") || user.may.includes(what);

export const json = (response: ServerResponse, status: number, body: unknown): ServerResponse =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
const failure = (code: number, reason: string, message: string): Fields => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  reason,
  code,
});

interface Logged {
  readonly version: number;
  readonly resource: Resource;
  readonly type: string;
  readonly object: ApiObject;
}
interface Watcher {
  readonly resource: Resource;
  readonly matches: (object: ApiObject) => boolean;
  readonly response: ServerResponse;
}

/**
 * The protocol of a kube-apiserver for nodes, pods, events and resource.k8s.io: get, paged lists, watches from a
 * resource version, and RBAC.
 */
export class TestApiServer extends TestServer {
  readonly #objects: Record<Resource, Map<string, ApiObject>> = {
    nodes: new Map(),
    pods: new Map(),
    events: new Map(),
    resourceclaims: new Map(),
    resourceslices: new Map(),
    deviceclasses: new Map(),
  };
  readonly #log: Logged[] = [];
  readonly #watchers = new Set<Watcher>();
  /** Resource versions up to this one have been compacted. */
  #compacted = 0;
  #version = 100;
  /** The kubelets by node, for the proxy. */
  readonly kubelets = new Map<string, TestKubelet>();

  put(resource: Resource, object: ApiObject): void {
    const key = keyOf(object.metadata);
    const before = this.#objects[resource].get(key);
    const metadata = { uid: `uid-${key.replace("/", "-")}`, ...object.metadata, resourceVersion: `${++this.#version}` };
    const stored = { ...object, metadata };
    this.#objects[resource].set(key, stored);
    this.#notify(resource, before === undefined ? "ADDED" : "MODIFIED", stored);
  }
  delete(resource: Resource, key: string): void {
    const object = this.#objects[resource].get(key);
    if (object === undefined) throw new Error(`no ${resource} ${key}`);
    this.#objects[resource].delete(key);
    this.#version++;
    this.#notify(resource, "DELETED", {
      ...object,
      metadata: { ...object.metadata, resourceVersion: `${this.#version}` },
    });
  }
  /** From now on, watches from older resource versions and further pages of older lists are answered with 410. */
  compact(): void {
    this.#compacted = this.#version;
  }
  bookmark(): void {
    for (const { resource, response } of this.#watchers) {
      const object = { kind: KINDS[resource], apiVersion: "v1", metadata: { resourceVersion: `${this.#version}` } };
      response.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
    }
  }
  /** `isClean`: ends the watches as a server does; otherwise cuts the connection in the middle of a line. */
  endWatches(isClean: boolean): void {
    for (const { response } of this.#watchers) {
      if (isClean) response.end();
      else response.write('{"type":"MODIFIED","obj', () => response.destroy());
    }
    this.#watchers.clear();
  }
  get watches(): number {
    return this.#watchers.size;
  }

  #notify(resource: Resource, type: string, object: ApiObject): void {
    this.#log.push({ version: this.#version, resource, type, object });
    for (const watcher of this.#watchers) {
      if (watcher.resource === resource && watcher.matches(object)) watcher.response.write(eventLine(type, object));
    }
  }

  protected override answer(request: IncomingMessage, response: ServerResponse, url: URL): Answered {
    const user = this.userOf(request);
    if (user === undefined) return json(response, 401, failure(401, "Unauthorized", "Unauthorized"));
    const [, proxied, path] = /^\/api\/v1\/nodes\/([^/]+)\/proxy(\/.*)$/.exec(url.pathname) ?? [];
    if (proxied !== undefined && path !== undefined) {
      if (!may(user, "get nodes/proxy")) return forbidden(response, user.name, "get", "nodes/proxy", proxied);
      return this.kubelets.get(proxied)?.respond(response, path);
    }
    const { group = "", namespace, name, resource } = PATH.exec(url.pathname)?.groups ?? {};
    if (!isResource(resource) || group !== groupOf(resource))
      return json(response, 404, failure(404, "NotFound", "the server could not find the requested resource"));
    const verb = name !== undefined ? "get" : url.searchParams.has("watch") ? "watch" : "list";
    if (!may(user, `${verb} ${resource}`)) return forbidden(response, user.name, verb, resource, name);
    if (name !== undefined)
      return this.#get(response, resource, namespace === undefined ? name : `${namespace}/${name}`);
    const matches = selector(url.searchParams, namespace);
    if (verb === "watch") return this.#watch(response, resource, matches, url);
    return this.#list(response, resource, matches, url);
  }

  #get(response: ServerResponse, resource: Resource, key: string): Answered {
    const object = this.#objects[resource].get(key);
    if (object !== undefined)
      return json(response, 200, { kind: KINDS[resource], apiVersion: versionOf(resource), ...object });
    const of = groupOf(resource) === "" ? resource : `${resource}.${groupOf(resource)}`;
    return json(response, 404, failure(404, "NotFound", `${of} "${key.split("/").at(-1)}" not found`));
  }

  #list(response: ServerResponse, resource: Resource, matches: Watcher["matches"], url: URL): Answered {
    const all = [...this.#objects[resource].values()].filter(matches);
    const limit = Number(url.searchParams.get("limit") ?? "0") || all.length;
    const [version = this.#version, from = 0] = (url.searchParams.get("continue") ?? "")
      .split(":")
      .filter(Boolean)
      .map(Number);
    if (version < this.#compacted) {
      return json(response, 410, failure(410, "Expired", "The provided continue parameter is too old"));
    }
    const items = all.slice(from, from + limit).map(({ kind: _, apiVersion: __, ...object }) => object);
    const next =
      from + limit < all.length
        ? { continue: `${version}:${from + limit}`, remainingItemCount: all.length - from - limit }
        : {};
    return json(response, 200, {
      kind: `${KINDS[resource]}List`,
      apiVersion: versionOf(resource),
      metadata: { resourceVersion: `${version}`, ...next },
      items,
    });
  }

  #watch(response: ServerResponse, resource: Resource, matches: Watcher["matches"], url: URL): Answered {
    const from = Number(url.searchParams.get("resourceVersion"));
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (from < this.#compacted) {
      const gone = failure(410, "Expired", `too old resource version: ${from} (${this.#compacted})`);
      return response.end(`${JSON.stringify({ type: "ERROR", object: gone })}\n`);
    }
    for (const { version, resource: of, type, object } of this.#log) {
      if (version > from && of === resource && matches(object)) response.write(eventLine(type, object));
    }
    const watcher = { resource, matches, response };
    this.#watchers.add(watcher);
    return response.on("close", () => this.#watchers.delete(watcher));
  }
}

const isResource = (text: string | undefined): text is Resource => text !== undefined && Object.hasOwn(KINDS, text);
const keyOf = ({ namespace, name }: Meta): string => (namespace === undefined ? name : `${namespace}/${name}`);
const eventLine = (type: string, object: ApiObject): string => `${JSON.stringify({ type, object })}\n`;

function selector(query: URLSearchParams, namespace: string | undefined): Watcher["matches"] {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  if (!labels.ok) throw new Error(labels.error);
  const wanted = (query.get("fieldSelector") ?? "")
    .split(",")
    .filter(Boolean)
    .map((one) => one.split("=") as [string, string]);
  const at = (object: unknown, path: string): unknown =>
    path.split(".").reduce<unknown>((value, step) => (value as Fields | undefined)?.[step], object);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    selects(labels.value, (at(object, "metadata.labels") ?? {}) as Labels) &&
    wanted.every(([path, value]) => at(object, path) === value);
}

function forbidden(response: ServerResponse, user: string, verb: string, resource: string, name?: string): Answered {
  const what = name === undefined ? resource : `${resource} "${name}"`;
  const message = `${what} is forbidden: User "${user}" cannot ${verb} resource "${resource}" in API group "${groupOf(resource)}" at the cluster scope`;
  return json(response, 403, failure(403, "Forbidden", message));
}

const SUBRESOURCES: Readonly<Record<string, string>> = {
  "/configz": "configz",
  "/stats/summary": "stats",
  "/pods": "pods",
};

/** The read-only part of a kubelet's server, with fine-grained authorization. */
export class TestKubelet extends TestServer {
  readonly bodies: Record<string, string> = {
    "/configz": real("configz.json"),
    "/stats/summary": real("stats-summary.json"),
    "/pods": real("pods.json"),
  };

  protected override answer(request: IncomingMessage, response: ServerResponse, url: URL): Answered {
    const user = this.userOf(request);
    const sub = SUBRESOURCES[url.pathname];
    if (user === undefined) return response.writeHead(401).end("Unauthorized");
    if (sub === undefined) return response.writeHead(404).end("404 page not found\n");
    if (!may(user, `get nodes/${sub}`) && !may(user, "get nodes/proxy")) {
      const subs = sub === "stats" ? "stats" : `${sub} proxy`;
      return void response
        .writeHead(403)
        .end(`Forbidden (user=${user.name}, verb=get, resource=nodes, subresource(s)=[${subs}])`);
    }
    return this.respond(response, url.pathname);
  }

  respond(response: ServerResponse, path: string): Answered {
    return response.writeHead(200, { "content-type": "application/json" }).end(this.bodies[path]);
  }
}

export interface TestCluster {
  readonly api: TestApiServer;
  readonly kubelet: TestKubelet;
  readonly users: Users;
  /** Adds another node like n1, with its own kubelet. */
  addNode(name: string): Promise<void>;
  /** Writes a kubeconfig with one context, `test`, and returns its path. */
  kubeconfig(user?: Fields, more?: { readonly cluster?: Fields; readonly context?: Fields }): string;
  readonly folder: string;
}

export const READER = { name: "reader", may: ["*"] } as const;

/** A cluster with the captured node n1 and its pods, and a user whose token `reader-token` may read everything. */
export async function testCluster({
  kubeletPair = testAuthority().issue("n1"),
}: {
  kubeletPair?: KeyPair;
} = {}): Promise<TestCluster> {
  const users: Users = { "reader-token": READER };
  const api = await new TestApiServer(users, testAuthority().issue("kube-apiserver")).listen();
  const kubelet = await new TestKubelet(users, kubeletPair).listen();
  const folder = scratchFolder();
  onTestFinished(async () => {
    await Promise.all([api.close(), kubelet.close()]);
  });
  api.put("nodes", nodeAt("n1", kubelet.port));
  api.kubelets.set("n1", kubelet);
  for (const pod of (JSON.parse(real("pods.json")) as { items: ApiObject[] }).items) api.put("pods", pod);
  let files = 0;
  const kubeconfig: TestCluster["kubeconfig"] = (user = { token: "reader-token" }, more = {}) => {
    const file = join(folder, `kubeconfig-${++files}`);
    writeFileSync(file, kubeconfigText(api.port, user, more));
    return file;
  };
  const addNode = async (name: string): Promise<void> => {
    const own = await new TestKubelet(users, testAuthority().issue(name)).listen();
    onTestFinished(() => own.close());
    own.bodies["/stats/summary"] = real("stats-summary.json").replace('"nodeName":"n1"', `"nodeName":"${name}"`);
    api.put("nodes", nodeAt(name, own.port));
    api.kubelets.set(name, own);
  };
  return { api, kubelet, users, folder, addNode, kubeconfig };
}

export function kubeconfigText(
  port: number,
  user: Fields,
  { cluster = {}, context = {} }: { cluster?: Fields; context?: Fields },
): string {
  const ca = Buffer.from(testAuthority().cert).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "c", cluster: { server: `https://127.0.0.1:${port}`, "certificate-authority-data": ca, ...cluster } },
    ],
    users: [{ name: "u", user }],
    contexts: [{ name: "test", context: { cluster: "c", user: "u", ...context } }],
    "current-context": "test",
  });
}

/** The captured node under another name, with its kubelet on loopback. */
export function nodeAt(name: string, port: number): ApiObject {
  const node = JSON.parse(real("node.json")) as ApiObject & { status: Fields };
  const addresses = [
    { type: "InternalIP", address: "127.0.0.1" },
    { type: "Hostname", address: name },
  ];
  const daemonEndpoints = { kubeletEndpoint: { Port: port } };
  return { ...node, metadata: { ...node.metadata, name }, status: { ...node.status, addresses, daemonEndpoints } };
}
