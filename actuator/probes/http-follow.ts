import { quoteBytes } from "../../api/decide/go/quote-bytes.ts";
import { quote } from "../../api/decide/go/strconv.ts";
import type { HttpHead } from "../../api/decide/probes/http-head.ts";
import { isRedirect, redirected } from "../../api/decide/probes/http-redirect.ts";
import type { HttpRequest } from "../../api/decide/probes/http-request.ts";
import { shownUrl } from "../../api/decide/probes/http-wire.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { Opened } from "./bounded.ts";
import { exchange } from "./http-exchange.ts";
import type { Stage } from "./http1.ts";
import { wired } from "./wired.ts";

/** Of an answer that leads elsewhere; a longer one is not read at all. Go 1.26: Client.do. */
const MOST_PASSED_BYTES = 2048;
const MOST_REQUESTS = 10;

/** Where a request stands: what is said of it when its time is over depends on that. */
export interface Progress {
  /** The one whose answer is waited for. */
  request: HttpRequest;
  /** Its last answer has come, but for the body. */
  isInBody: boolean;
  /** Undefined: an answer is waited for. */
  stage?: Stage;
}
export interface LastAnswer {
  readonly status: number;
  /** A text of bytes. */
  readonly body: string;
  /** What is wrong with the body, in Go's words; undefined: nothing. */
  readonly error: string | undefined;
}

/**
 * Asks, and goes from one answer to the next as long as they lead to the same host: the kubelet's client for containers.
 * Error: Go's words, `Get "http://10.0.0.1:80/": EOF`. kubelet 1.36: RedirectChecker; Go 1.26: Client.do.
 * @param mostBytes of the last answer's body
 */
export async function follow(
  progress: Progress,
  mostBytes: number,
  opened: Opened,
): Promise<Result<LastAnswer, string>> {
  const first = progress.request;
  const onStage = (stage: Stage): void => {
    progress.stage = stage;
  };
  for (let asked = 1; ; asked++) {
    const { request } = progress;
    const sent = wired(request);
    if (!sent.ok) return err(inGet(request, sent.error));
    let next: ReturnType<typeof redirected> = ok(null);
    const wanted = ({ status, location, length }: HttpHead): number => {
      if (isRedirect(status, location)) next = redirected(first, request, location);
      if (!next.ok) return 0;
      progress.isInBody = next.value === null;
      if (next.value === null) return mostBytes;
      // whatever comes of this body, it is the next answer that is waited for
      progress.request = next.value;
      progress.stage = "answer";
      return length <= MOST_PASSED_BYTES ? MOST_PASSED_BYTES : 0;
    };
    const { head, body, error } = await exchange(sent.value, { wanted, onStage }, opened);
    if (head === undefined) return err(inGet(request, error ?? "EOF"));
    if (!next.ok) return err(inGet(request, next.error));
    if (next.value === null) return ok({ status: head.status, body, error });
    if (asked === MOST_REQUESTS) {
      return err(`Get ${quoteBytes(head.location)}: stopped after ${MOST_REQUESTS} redirects`);
    }
  }
}

/** An error of a request, as Go's client says it. */
export const inGet = ({ url }: HttpRequest, words: string): string => `Get ${quote(shownUrl(url))}: ${words}`;
