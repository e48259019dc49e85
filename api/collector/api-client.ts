import { unansweredText } from "../base/certificate-fault.ts";
import { type Fields, fieldsOf } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";

/** Why the API did not accept a request. */
export interface ApiFault {
  /** `away`: no response, or one that says to try again; `refused`: the same request would be refused again. */
  readonly code: "away" | "refused";
  /** One line; the API's own message if it responded. */
  readonly message: string;
  /** The HTTP status of the response; absent if there was none. */
  readonly status?: number;
}

/** An API to which snapshots and outcomes are sent. */
export interface ApiClient {
  /** `body`: JSON text, or lines of it (`application/x-ndjson`). Returns the text of a 2xx response. */
  send(method: "PUT" | "POST", path: string, body: string, type?: string): Promise<Result<string, ApiFault>>;
}

const TIMEOUT_MS = 30_000;
const JSON_TYPE = "application/json";
/** Temporary statuses: overload, restarts, and a history that cannot be written. */
const PASSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

interface ApiClientOptions {
  /** With a scheme and without a trailing slash. */
  readonly url: string;
  /** Read for each request, so that it can be replaced at any time; undefined to send none. Errors: in one line. */
  readonly token: () => Promise<Result<string | undefined, string>>;
  /** Default: the network. An API in this process handles requests directly. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

export function apiClient({ url, token, fetch: ask = fetch }: ApiClientOptions): ApiClient {
  return {
    send: async (method, path, body, type = JSON_TYPE) => {
      const secret = await token();
      if (!secret.ok) return err({ code: "away", message: secret.error });
      const headers = new Headers({ "content-type": type });
      if (secret.value !== undefined) headers.set("authorization", `Bearer ${secret.value}`);
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      try {
        const response = await ask(new Request(`${url}/${path}`, { method, headers, body, signal }));
        const text = await response.text();
        return response.ok ? ok(text) : err(faultOf(url, response.status, text));
      } catch (error) {
        return err({ code: "away", message: unansweredText(url, error) });
      }
    },
  };
}

function faultOf(url: string, status: number, text: string): ApiFault {
  const code = PASSES.has(status) || status === 401 || status === 403 ? "away" : "refused";
  const { code: problem, detail, advice } = objectIn(text);
  if (typeof problem !== "string")
    return { code, status, message: `${url} answered ${status}, but not with JSON: is this a nodewise API?` };
  return { code, status, message: `${url} answered ${status} ${problem}: ${String(detail)}; ${String(advice)}` };
}

/** The members of a JSON object; none for any other text. */
export function objectIn(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return {};
  }
}
