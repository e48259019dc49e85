import { err, ok, type Result } from "../../api/model/result.ts";
import { http, https } from "../http.ts";
import type { LifecycleHandler } from "../lifecycle/pod.ts";

export type HttpGet = Extract<LifecycleHandler, { http: unknown }>["http"];

/** The kubelet's clients call themselves so. */
const HEADERS = [
  ["User-Agent", "kube-lifecycle/1.36"],
  ["Accept", "*/*"],
] as const;

/**
 * Asks for a hook's address. Any answer will do, whatever its status, and none is followed elsewhere; certificates are
 * not checked. Error: why there was no answer. kubelet 1.36: runHTTPHandler.
 * @param host of the pod, where the hook names none
 */
export async function httpGet(get: HttpGet, host: string, signal: AbortSignal): Promise<Result<null, string>> {
  const first = await ask(get.scheme, get, host, signal);
  // some serve plain HTTP where a pod says HTTPS
  return first.ok || get.scheme === "http" || !IS_PLAIN.test(first.error) ? first : ask("http", get, host, signal);
}
const IS_PLAIN = /wrong version number|packet length too long|http request/i;

function ask(
  scheme: HttpGet["scheme"],
  get: HttpGet,
  host: string,
  signal: AbortSignal,
): Promise<Result<null, string>> {
  const { request } = scheme === "https" ? https : http;
  const path = get.path.startsWith("/") ? get.path : `/${get.path}`;
  const options = {
    host,
    port: get.port,
    path: encodeURI(decodable(path)),
    headers: headersOf(get),
    signal,
    agent: false as const,
    rejectUnauthorized: false,
  };
  return new Promise((resolve) => {
    const failed = (error: unknown) =>
      resolve(err(`Get "${scheme}://${authority(host, get.port)}${path}": ${(error as Error).message}`));
    try {
      const asked = request(options, (response) => {
        response.destroy();
        resolve(ok(null));
      });
      asked.on("error", failed);
      asked.end();
    } catch (error) {
      failed(error);
    }
  });
}

/** Parts that are escaped already stay as they are. */
function decodable(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
const authority = (host: string, port: number): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;

/** One name may come more than once, and those of the client be replaced. */
function headersOf({ headers }: HttpGet): Record<string, string[]> {
  const all = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (const { name, value } of headers) {
    const known = all.get(name.toLowerCase());
    if (known === undefined) all.set(name.toLowerCase(), { name, values: [value] });
    else known.values.push(value);
  }
  for (const [name, value] of HEADERS) if (!all.has(name.toLowerCase())) all.set(name, { name, values: [value] });
  return Object.fromEntries([...all.values()].map(({ name, values }) => [name, values]));
}
