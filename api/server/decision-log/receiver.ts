import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Receiver, Sent } from "./deliver.ts";

export interface ReceiverSetting {
  readonly url: URL;
  /** Asked for each request, so that a token may be replaced at any time; null: none. Errors of reading it are told as a failed attempt. */
  readonly token: () => string | null;
}

const TIMEOUT_MS = 10_000;
/** A receiver may not hold the log up for longer. */
const MOST_RETRY_MS = 10 * 60_000;
const packed = promisify(gzip);

/** A receiver of OPA's decision log service API: POST of a JSON array, in gzip. */
export function httpReceiver({ url, token }: ReceiverSetting): Receiver {
  return {
    // a query may hold a secret
    label: `${url.origin}${url.pathname}`,
    send: async (events, ended) => {
      try {
        const secret = token();
        const response = await fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "content-encoding": "gzip",
            "user-agent": "nodewise",
            ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
          },
          body: new Uint8Array(await packed(`[${events.join(",")}]`)),
          redirect: "manual",
          signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ended]),
        });
        // its body is of no interest, and the connection goes on only without it
        await response.body?.cancel();
        return sentOf(response);
      } catch (error) {
        return { state: "failed", reason: reasonOf(error) };
      }
    },
    close: async () => {},
  };
}

function sentOf({ ok, status, headers }: Response): Sent {
  if (ok) return { state: "taken" };
  if (status === 413) return { state: "too-large" };
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  const reason = `it answered ${status}`;
  return Number.isFinite(seconds) && seconds >= 0
    ? { state: "failed", reason, retryMs: Math.min(seconds * 1000, MOST_RETRY_MS) }
    : { state: "failed", reason };
}

/** fetch tells what went wrong as a cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no answer within ${TIMEOUT_MS / 1000} s`;
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  return cause?.code ?? cause?.message ?? error.message;
}
