import * as http from "node:http";
import * as https from "node:https";
import type { Readable } from "node:stream";
import { certificateFault } from "../base/certificate-fault.ts";
import { ok, type Result } from "../base/result.ts";
import { type ClusterFault, clusterFault } from "./fault.ts";

export type Headers = Readonly<Record<string, string | readonly string[]>>;

export interface HttpAsk {
  readonly url: URL;
  readonly headers: Headers;
  readonly agent: http.Agent;
  /** Until the response is complete; for a stream, until it starts, and between two of its parts. */
  readonly timeoutMs: number;
  /** The most bytes of a response, or of a line of a stream. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
  /** The advice for a certificate of an unknown authority. */
  readonly authority: string;
}
export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  /** The seconds that the server asks to wait before the next request; null if it does not say. */
  readonly retryAfterSeconds: number | null;
}

/** A complete response of at most `maxBytes`. Redirects are not followed: credentials go only to the requested address. */
export async function ask(asked: HttpAsk): Promise<Result<HttpAnswer, ClusterFault>> {
  const limit = deadline(asked);
  try {
    const response = await responseHead(asked, limit.signal);
    const text = await textOf(response, asked.maxBytes);
    if (text === null) return tooLarge(asked);
    return ok({
      status: response.statusCode ?? 0,
      text,
      retryAfterSeconds: secondsOf(response.headers["retry-after"]),
    });
  } catch (error) {
    return faultOf(error, asked, limit);
  } finally {
    limit.clear();
  }
}

/**
 * The lines of a response as they arrive, until it ends, breaks off, or is silent for `timeoutMs`. A response with another status
 * than 200 is returned whole, without lines. `onBegin`: the head of a 200 has arrived, and lines may take long. Errors: as `ask`;
 * null if it ended normally. Throws what the two functions throw.
 */
export async function askLines(
  asked: HttpAsk,
  onBegin: () => void,
  onLine: (line: string) => void,
): Promise<Result<HttpAnswer | null, ClusterFault>> {
  const limit = deadline(asked);
  let mistake: { readonly error: unknown } | undefined;
  const notify = (callback: () => void): void => {
    try {
      callback();
    } catch (error) {
      mistake = { error };
      throw error;
    }
  };
  try {
    const response = await responseHead(asked, limit.signal);
    if (response.statusCode !== 200) {
      const text = (await textOf(response, asked.maxBytes)) ?? "";
      return ok({
        status: response.statusCode ?? 0,
        text,
        retryAfterSeconds: secondsOf(response.headers["retry-after"]),
      });
    }
    notify(onBegin);
    let rest = "";
    response.setEncoding("utf8");
    for await (const chunk of response as AsyncIterable<string>) {
      limit.restart();
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > asked.maxBytes) return tooLarge(asked);
      for (const line of lines) if (line !== "") notify(() => onLine(line));
    }
    return ok(null);
  } catch (error) {
    if (mistake !== undefined) throw mistake.error;
    return faultOf(error, asked, limit);
  } finally {
    limit.clear();
  }
}

interface Deadline {
  readonly signal: AbortSignal;
  hasPassed: boolean;
  restart(): void;
  clear(): void;
}
function deadline({ timeoutMs, signal }: HttpAsk): Deadline {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  if (signal?.aborted === true) stop();
  signal?.addEventListener("abort", stop);
  const pass = (): void => {
    limit.hasPassed = true;
    stop();
  };
  let timer = setTimeout(pass, timeoutMs);
  const limit: Deadline = {
    signal: controller.signal,
    hasPassed: false,
    restart: () => {
      clearTimeout(timer);
      timer = setTimeout(pass, timeoutMs);
    },
    clear: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    },
  };
  return limit;
}

/** Settles when the head of the response has arrived. */
function responseHead({ url, headers, agent }: HttpAsk, signal: AbortSignal): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === "https:" ? https : http;
    const sent = request(
      url,
      { method: "GET", headers: { ...headers } as http.OutgoingHttpHeaders, agent, signal },
      resolve,
    );
    sent.on("error", reject);
    sent.end();
  });
}

/** The text; null if it is longer than `maxBytes`. Throws if the response breaks off. */
async function textOf(response: Readable, maxBytes: number): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

const secondsOf = (header: string | undefined): number | null =>
  header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) : null;

const tooLarge = ({ url, maxBytes }: HttpAsk): Result<never, ClusterFault> =>
  clusterFault(
    "too-large",
    `${placeOf(url)} answers with more than ${maxBytes} bytes`,
    "no such answer is that long: check which server answers there",
  );

/** The address without its query, which may be long. */
export const placeOf = (url: URL): string => `${url.origin}${url.pathname}`;

function faultOf(error: unknown, { url, timeoutMs, signal, authority }: HttpAsk, { hasPassed }: Deadline) {
  const place = placeOf(url);
  if (hasPassed) {
    const next = "check whether it is running, and whether the network allows the connection";
    return clusterFault("timed-out", `${place} does not answer in ${timeoutMs / 1000} s`, next);
  }
  if (signal?.aborted === true) return clusterFault("stopped", `${place}: stopped`, "");
  const certificate = certificateFault(error, authority);
  if (certificate !== undefined) return clusterFault("untrusted", `${place}: ${certificate}`, "");
  const { code, message } = error as NodeJS.ErrnoException;
  const why = WORDS[code ?? ""] ?? code ?? message;
  return clusterFault(
    "unreachable",
    `${place}: ${why}`,
    "check whether it is running, and whether the address is right",
  );
}
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection is refused (ECONNREFUSED)",
  ECONNRESET: "the connection was closed (ECONNRESET)",
  ENOTFOUND: "no such host (ENOTFOUND)",
  EAI_AGAIN: "the name cannot be resolved now (EAI_AGAIN)",
  EHOSTUNREACH: "no route to the host (EHOSTUNREACH)",
  ENETUNREACH: "no route to the network (ENETUNREACH)",
  EPROTO: "it does not use TLS (EPROTO)",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not use TLS",
};
