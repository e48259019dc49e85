import { setTimeout as sleep } from "node:timers/promises";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { withoutDriverParameters, withoutManagers, withoutPodSecrets } from "../model/redact.ts";
import type { ClusterConnection } from "./access.ts";
import { type AccessRule, type ClusterFault, clusterFault } from "./fault.ts";
import { ask, askLines, type HttpAnswer, type HttpAsk, placeOf } from "./http.ts";

/** The API group of dynamic resource allocation. */
export const DRA = "resource.k8s.io";
/** The resources that are read: the kind of their objects, and the API group if it is not the core group. */
const RESOURCES = {
  nodes: { kind: "Node" },
  pods: { kind: "Pod" },
  events: { kind: "Event" },
  resourceclaims: { kind: "ResourceClaim", apiGroup: DRA },
  resourceslices: { kind: "ResourceSlice", apiGroup: DRA },
  deviceclasses: { kind: "DeviceClass", apiGroup: DRA },
} as const satisfies Readonly<Record<string, { readonly kind: string; readonly apiGroup?: string }>>;

/** A resource to read, of version v1 of its API group, and where to list it. */
export interface ApiResource {
  readonly resource: keyof typeof RESOURCES;
  /** Lists one namespace; if absent, the whole cluster. */
  readonly namespace?: string;
}
type Query = Readonly<Record<string, string>>;

/** A list of any number of pages, combined. */
interface ApiList {
  /** The version from which a watch continues. */
  readonly resourceVersion: string;
  readonly items: readonly Fields[];
}

const TIMEOUT_MS = 30_000;
/** The longest time that a timer accepts. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** The largest page; 500 pods of the largest size that etcd accepts would not fit, and usual ones take 5 MB. */
const MAX_PAGE_BYTES = 128 * 1024 * 1024;
/** Objects per page, as kubectl requests them. */
export const PAGE = 100;
/** The server ends a watch after this time, so that watches move to other servers of a cluster. */
const WATCH_SECONDS = 300;
/** The longest wait for an API server that asks to retry later. */
const MAX_WAIT_SECONDS = 10;
const AUTHORITY =
  "correct the certificate-authority of the cluster in the kubeconfig (`kubectl config view` shows which it is)";

/** Reads from an API server and removes the secrets of each object. Expired credentials are renewed once. */
export class ApiServer {
  readonly #access: ClusterConnection;
  readonly #timeoutMs: number;

  /** `requestTimeoutMs`: for one response; 0 for none. */
  constructor(
    access: ClusterConnection,
    { requestTimeoutMs = TIMEOUT_MS }: { readonly requestTimeoutMs?: number | undefined },
  ) {
    this.#access = access;
    this.#timeoutMs = requestTimeoutMs === 0 ? NO_TIMEOUT_MS : requestTimeoutMs;
  }

  /** One object. Errors: not-found, forbidden, and those of the connection. */
  async get(of: ApiResource, name: string, signal?: AbortSignal): Promise<Result<Fields, ClusterFault>> {
    const read = await this.read(`${pathOf(of)}/${encodeURIComponent(name)}`, {}, ruleOf(of, "get"), signal);
    return read.ok ? objectIn(read.value, of) : read;
  }

  /** All pages of a list. A list that the server forgets between two pages is read again as a whole. */
  async list(of: ApiResource, query: Query = {}, signal?: AbortSignal): Promise<Result<ApiList, ClusterFault>> {
    const items: Fields[] = [];
    const add = (page: readonly Fields[]): void => void items.push(...page);
    const read = await this.pages(of, { ...query, limit: `${PAGE}` }, add, signal);
    if (read.ok) return ok({ resourceVersion: read.value, items });
    if (read.error.code !== "gone") return read;
    items.length = 0;
    const whole = await this.pages(of, query, add, signal);
    return whole.ok ? ok({ resourceVersion: whole.value, items }) : whole;
  }

  /**
   * The pages of a list one by one, each with at most `limit` objects; returns the resourceVersion from which a watch continues.
   * Errors: gone (the server has forgotten the list between two pages), forbidden, and those of the connection.
   */
  async pages(
    of: ApiResource,
    query: Query,
    onPage: (items: readonly Fields[]) => void,
    signal?: AbortSignal,
  ): Promise<Result<string, ClusterFault>> {
    let next: string | undefined;
    while (true) {
      const asked = next === undefined ? query : { ...query, continue: next };
      const read = await this.read(pathOf(of), asked, ruleOf(of, "list"), signal);
      if (!read.ok) return read;
      const page = pageIn(read.value, of, this.#access.server);
      if (!page.ok) return page;
      onPage(page.value.items);
      next = page.value.continue;
      if (next === undefined) return ok(page.value.resourceVersion);
    }
  }

  /**
   * Watches until the server ends it, which it does after some minutes. `onBegin`: the server has accepted the watch. `onEvent`:
   * ADDED, MODIFIED or DELETED with the object, or BOOKMARK with only its resourceVersion. Errors: gone (list again), timed-out
   * (no data for `quietMs`), stopped, forbidden, and those of the connection.
   */
  async watch(
    of: ApiResource,
    resourceVersion: string,
    { signal, quietMs }: { readonly signal: AbortSignal; readonly quietMs: number },
    onBegin: () => void,
    onEvent: (type: string, object: Fields) => void,
  ): Promise<Result<void, ClusterFault>> {
    let fault: ClusterFault | undefined;
    const onLine = (line: string): void => {
      const { type, object } = fieldsOf(parsed(line));
      if (typeof type !== "string" || !isObject(object)) return;
      if (type === "ERROR") fault ??= statusFault(Number(object["code"]), object, this.#url(pathOf(of), {}));
      else onEvent(type, type === "BOOKMARK" ? object : cleaned(object, of));
    };
    const query = { watch: "true", allowWatchBookmarks: "true", resourceVersion, timeoutSeconds: `${WATCH_SECONDS}` };
    const url = this.#url(pathOf(of), query);
    const limits = { timeoutMs: quietMs, maxBytes: MAX_PAGE_BYTES, signal, authority: AUTHORITY };
    const watched = await this.#access.authorized(({ headers, agent }) =>
      askLines({ url, headers, agent, ...limits }, onBegin, onLine),
    );
    if (!watched.ok) return watched;
    if (watched.value !== null) return answerFault(watched.value, url, ruleOf(of, "watch"));
    return fault === undefined ? ok(undefined) : err(fault);
  }

  /** The JSON at a path. `rule`: the permission that it needs. */
  async read(
    path: string,
    query: Query,
    rule: AccessRule,
    signal?: AbortSignal,
    limits: Pick<HttpAsk, "timeoutMs" | "maxBytes"> = { timeoutMs: this.#timeoutMs, maxBytes: MAX_PAGE_BYTES },
  ): Promise<Result<unknown, ClusterFault>> {
    const url = this.#url(path, query);
    const answer = await this.#access.authorized(({ headers, agent }) =>
      askWithRetry({ url, headers, agent, ...limits, signal, authority: AUTHORITY }),
    );
    if (!answer.ok) return answer;
    return answer.value.status === 200 ? jsonIn(answer.value, url) : answerFault(answer.value, url, rule);
  }

  #url(path: string, query: Query): URL {
    const url = new URL(this.#access.server + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }
}

/** Sends a request; if the API server is overloaded and says so, sends it once more. */
async function askWithRetry(asked: HttpAsk): Promise<Result<HttpAnswer, ClusterFault>> {
  const first = await ask(asked);
  if (!first.ok || (first.value.status !== 429 && first.value.status !== 503)) return first;
  await sleep(1000 * Math.min(MAX_WAIT_SECONDS, first.value.retryAfterSeconds ?? 1));
  return ask(asked);
}

const groupOf = ({ resource }: ApiResource): { readonly kind: string; readonly apiGroup?: string } =>
  RESOURCES[resource];
function pathOf(of: ApiResource): string {
  const { apiGroup } = groupOf(of);
  const root = apiGroup === undefined ? "/api/v1" : `/apis/${apiGroup}/v1`;
  const { resource, namespace } = of;
  return namespace === undefined
    ? `${root}/${resource}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}`;
}
function ruleOf(of: ApiResource, verb: string): AccessRule {
  const { apiGroup } = groupOf(of);
  return { ...(apiGroup === undefined ? {} : { apiGroup }), resource: of.resource, verbs: [verb] };
}

/** The object as kubectl prints it: list items get their own kind and apiVersion. */
function cleaned(object: Fields, of: ApiResource): Fields {
  const { kind, apiGroup } = groupOf(of);
  if (apiGroup !== undefined) return withoutDriverParameters({ apiVersion: `${apiGroup}/v1`, kind, ...object });
  const whole = { apiVersion: "v1", kind, ...object };
  return of.resource === "pods" ? withoutPodSecrets(whole) : withoutManagers(whole);
}

interface Page extends ApiList {
  readonly continue: string | undefined;
}
function pageIn(value: unknown, of: ApiResource, server: string): Result<Page, ClusterFault> {
  const { items, metadata } = fieldsOf(value);
  const { resourceVersion, continue: next } = fieldsOf(metadata);
  const isEmpty = items === null || items === undefined;
  if (!isObject(value) || !(isEmpty || Array.isArray(items))) return noList(of, server);
  const objects = ((items ?? []) as readonly unknown[]).filter(isObject).map((item) => cleaned(item, of));
  return ok({
    resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "",
    items: objects,
    continue: typeof next === "string" && next !== "" ? next : undefined,
  });
}
const noList = ({ resource }: ApiResource, server: string) =>
  clusterFault("unexpected-answer", `${server} answers with no list of ${resource}`, "check that it is the API server");

const objectIn = (value: unknown, of: ApiResource): Result<Fields, ClusterFault> =>
  isObject(value)
    ? ok(cleaned(value, of))
    : clusterFault(
        "unexpected-answer",
        `the API server answers with no ${groupOf(of).kind}`,
        "check that it is the API server",
      );

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function jsonIn({ text }: HttpAnswer, url: URL): Result<unknown, ClusterFault> {
  const value = parsed(text);
  if (value !== undefined) return ok(value);
  return clusterFault("not-json", `${placeOf(url)} does not answer with JSON`, "check which server answers there");
}

/** The fault for a response other than 200. `rule`: the permission that the request needs. */
export function answerFault({ status, text }: HttpAnswer, url: URL, rule: AccessRule): Result<never, ClusterFault> {
  const said = parsed(text);
  const fault = statusFault(status, isObject(said) ? said : { message: text }, url);
  if (fault.code === "not-found" && rule.apiGroup === DRA) return err({ ...fault, next: NOT_SERVED });
  if (fault.code !== "forbidden") return err(fault);
  const user = userIn(fault.message);
  return err({ ...fault, rule, ...(user === undefined ? {} : { user }) });
}

const NOT_SERVED =
  "an API server has resource.k8s.io/v1 since Kubernetes 1.34, unless its --runtime-config disables it";
const MAX_WORDS = 300;
function statusFault(status: number, said: Fields, url: URL): ClusterFault {
  const words = String(said["message"] ?? "")
    .trim()
    .slice(0, MAX_WORDS);
  const message = `${placeOf(url)} answers ${status}${words === "" ? "" : `: ${words}`}`;
  if (status === 401) {
    const next = "the credentials are not accepted: log in again, as for kubectl (`kubectl get nodes` shows the same)";
    return { code: "unauthorized", message, next };
  }
  if (status === 403) return { code: "forbidden", message, next: "ask for the right, or read with another context" };
  if (status === 404) return { code: "not-found", message, next: "check the name" };
  if (status === 410) return { code: "gone", message, next: "list again" };
  return { code: "unexpected-answer", message, next: status >= 500 || status === 429 ? "try again later" : "" };
}

/** The user in an error message: `User "x" cannot list …` of an API server, `Forbidden (user=x, …)` of a kubelet. */
const userIn = (text: string): string | undefined =>
  /User "([^"]+)"/.exec(text)?.[1] ?? /\(user=([^,)]+)/.exec(text)?.[1];
