import type { OutcomeFilter } from "../../../db/rows.ts";
import type { DecisionFilter } from "../../../db/store.ts";
import { unansweredText } from "../../base/certificate-fault.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { AgreementPage } from "../../http/agreement.ts";
import type { ProblemCode } from "../../service/problem.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { firstOf, type Listed, type RemovalSource, type Summary } from "./history-source.ts";

const TIMEOUT_MS = 30_000;

/** The newest decisions of a running API, at most `limit`; without a node in the filter, of all nodes together. */
export async function decisionsOfApi(
  url: string,
  token: string | undefined,
  filter: DecisionFilter,
  limit: number,
): Promise<Result<readonly Listed[], Fault>> {
  const api = apiOf(url, token);
  if (!api.ok) return api;
  const { node, kind, verdict, reason, pod, kubelet, sinceMs, untilMs } = filter;
  const query = { kind, verdict, reason, pod, kubelet, since: timeText(sinceMs), until: timeText(untilMs) };
  const path = node === undefined ? "v1/decisions" : `${pathOf(node)}/decisions`;
  return listed(api.value, path, "decisions", query, limit);
}

/** Whether the API has matching outcomes; false if it does not say, as an older one does not know the filter. */
export async function apiHasOutcomes(url: string, token: string | undefined, filter: OutcomeFilter): Promise<boolean> {
  const api = apiOf(url, token);
  if (!api.ok) return false;
  const { sinceMs, untilMs, ...named } = filter;
  const query = { ...named, since: timeText(sinceMs), until: timeText(untilMs), limit: "1" };
  const found = await api.value<AgreementPage>("v1/agreement", query);
  return found.ok && found.value.outcomes.length > 0;
}

/** A GET client for a running API. Errors: an invalid address. */
export function apiOf(url: string, token: string | undefined): Result<Get, Fault> {
  const api = addressOf(url);
  return api.ok ? ok((path, query) => askJson(api.value, path, query, token)) : api;
}
/** A POST client for a running API. Errors: as `apiOf`. */
export function posterOf(url: string, token: string | undefined): Result<Post, Fault> {
  const api = addressOf(url);
  return api.ok ? ok((path, body) => askJson(api.value, path, {}, token, body)) : api;
}

/** A client that posts lines of JSON to a running API. Errors: as `apiOf`. */
export function linesPoster(
  url: string,
  token: string | undefined,
): Result<<T>(path: string, lines: readonly object[]) => Promise<Result<T, Fault>>, Fault> {
  const api = addressOf(url);
  if (!api.ok) return api;
  return ok((path, lines) => askJson(api.value, path, {}, token, lines.map((line) => JSON.stringify(line)).join("\n")));
}

export function addressOf(url: string): Result<URL, Fault> {
  const api = URL.parse(url);
  if (api === null || !/^https?:$/.test(api.protocol) || api.username !== "")
    return fault(EXIT.badInput, `--api: \`${url}\` is not an address such as http://127.0.0.1:8787`);
  return ok(api);
}

type Query = Readonly<Record<string, string | undefined>>;
type Get = <T>(path: string, query: Query) => Promise<Result<T, Fault>>;
type Post = <T>(path: string, body: object) => Promise<Result<T, Fault>>;

const pathOf = (node: string): string => `v1/nodes/${encodeURIComponent(node)}`;

/** Errors: an invalid address. */
export function removalsOfApi(url: string, token: string | undefined): Result<RemovalSource, Fault> {
  const api = apiOf(url, token);
  if (!api.ok) return api;
  const get = api.value;
  return ok({
    list: ({ node, target, end, search: q, sinceMs, untilMs }, limit) => {
      const filter = { target, end, q, since: timeText(sinceMs), until: timeText(untilMs) };
      return listed(get, `${pathOf(node)}/removals`, "removals", filter, limit);
    },
    summarize: (node, { sinceMs, untilMs }) =>
      get<Summary>(`${pathOf(node)}/removals/summary`, { since: timeText(sinceMs), until: timeText(untilMs) }),
  });
}

/** The first `limit` items of a list of the API; `name`: the member of the response with the list. */
const listed = <Item>(
  get: Get,
  path: string,
  name: string,
  filter: Query,
  limit: number,
): Promise<Result<readonly Item[], Fault>> =>
  firstOf(limit, async ({ limit: size, pageToken }) => {
    const page = await get<Readonly<Record<string, unknown>>>(path, { ...filter, limit: String(size), pageToken });
    if (!page.ok) return page;
    const { [name]: items, nextPageToken } = page.value;
    return ok({ items: items as readonly Item[], nextPageToken: nextPageToken as string | null });
  });

export const timeText = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString();

/** Problems with a typed name, such as an unknown node: bad input, as with a local history. */
const UNKNOWN_NAMES: ReadonlySet<string> = new Set<ProblemCode>(["no_such_pod", "unknown_decision", "unknown_node"]);

/** Errors: no response, one that is no JSON, or the API's own problem. */
async function askJson<T>(
  api: URL,
  path: string,
  query: Query,
  token: string | undefined,
  /** A text is lines of JSON. */
  body?: object | string,
): Promise<Result<T, Fault>> {
  const url = new URL(path, api.href.endsWith("/") ? api : `${api.href}/`);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const isLines = typeof body === "string";
  if (body !== undefined) headers["content-type"] = isLines ? "application/x-ndjson" : "application/json";
  const posted = body === undefined ? {} : { method: "POST", body: isLines ? body : JSON.stringify(body) };
  try {
    const response = await fetch(url, { ...posted, headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok && typeof answer === "object" && answer !== null) return ok(answer as T);
    const { code, detail, advice } = (answer ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof code !== "string")
      return fault(EXIT.failed, `${url.href} answered ${response.status} and no JSON: is this a nodewise API?`);
    const exit = response.status === 400 || UNKNOWN_NAMES.has(code) ? EXIT.badInput : EXIT.failed;
    const line = `${api.origin} answered ${response.status} ${code}: ${String(detail)}; ${String(advice)}`;
    return err({ exit, lines: [line], problem: { code, detail: String(detail) } });
  } catch (error) {
    return fault(EXIT.failed, unansweredText(api.origin, error, ": is `nodewise api` running there?"));
  }
}
