import type { Store } from "../../db/store.ts";
import { ok, type Result } from "../base/result.ts";
import type { Reply, Streams } from "../dependencies.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { requireNode } from "./auth/authorize.ts";
import { type Exchange, json, queryOf } from "./route.ts";

const POLL_INTERVAL_MS = 1_000;
/** The interval at which something is sent, so that proxies keep the connection open. */
const BEAT_MS = 15_000;
const RETRY_MS = 2_000;
/** The maximum length of a stream; the client then reconnects, with a token that may have been revoked. */
const LONGEST_MS = 300_000;
/** Events that a slow reader may leave. */
const MAX_UNREAD = 8;
const open = new WeakMap<Streams, number>();

/**
 * GET /live: the newest decision, of a node or of all nodes; as server-sent events if the platform keeps responses
 * open, which the JSON answer says.
 */
export async function getLive(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const { deps, caller, c } = exchange;
  const query = queryOf(exchange, ["node"]);
  if (!query.ok) return query;
  const node = query.value.node ?? caller.node ?? undefined;
  const allowed = node === undefined ? ok(null) : requireNode(caller, node);
  if (!allowed.ok) return allowed;
  const first = await newest(deps.store, node);
  if (!first.ok) return first;
  const { streams } = deps;
  const isAsked = /\btext\/event-stream\b/.test(c.req.header("accept") ?? "");
  const hasFreeStream = streams !== undefined && (open.get(streams) ?? 0) < streams.limit;
  if (isAsked && hasFreeStream) return ok(eventStream(streams, first.value, () => newest(deps.store, node)));
  return json({ ...first.value, streams: hasFreeStream });
}

interface Newest {
  readonly id: string | null;
  /** When the decision was made; for a repeated one, the last time. */
  readonly decidedAt: string | null;
}
async function newest(store: Store, node: string | undefined): Promise<Result<Newest, Problem>> {
  const found = await store.newestDecision(node);
  if (!found.ok) return historyProblem(found.error);
  const { id, lastAtMs } = found.value ?? { id: null, lastAtMs: null };
  return ok({ id, decidedAt: lastAtMs === null ? null : rfc3339(lastAtMs) });
}

/**
 * A stream that ends when the client disconnects, the server stops, or the history cannot be read; clients reconnect
 * by themselves.
 */
function eventStream(streams: Streams, first: Newest, look: () => Promise<Result<Newest, Problem>>): Reply {
  const { closing } = streams;
  const ended = Promise.withResolvers<void>();
  const bytes = new TextEncoder();
  let lastSent = first;
  let quietMs = 0;
  let ageMs = 0;
  let isReading = false;
  let timer: ReturnType<typeof setInterval> | undefined;
  let end = (): void => {};
  const leave = (): boolean => {
    if (timer === undefined) return false;
    clearInterval(timer);
    timer = undefined;
    closing.removeEventListener("abort", end);
    open.set(streams, (open.get(streams) ?? 1) - 1);
    ended.resolve();
    return true;
  };

  const turn = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    // a reader that takes nothing is not written to
    if (isReading || (controller.desiredSize ?? 0) <= -MAX_UNREAD) return;
    ageMs += POLL_INTERVAL_MS;
    if (ageMs >= LONGEST_MS) return end();
    isReading = true;
    const found = await look();
    isReading = false;
    if (timer === undefined) return;
    if (!found.ok) return end();
    quietMs += POLL_INTERVAL_MS;
    const isNew = found.value.id !== lastSent.id || found.value.decidedAt !== lastSent.decidedAt;
    if (!isNew && quietMs < BEAT_MS) return;
    controller.enqueue(bytes.encode(isNew ? eventText(found.value) : ": still here\n\n"));
    lastSent = found.value;
    quietMs = 0;
  };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      end = () => {
        if (leave()) controller.close();
      };
      open.set(streams, (open.get(streams) ?? 0) + 1);
      controller.enqueue(bytes.encode(`retry: ${RETRY_MS}\n${eventText(first)}`));
      timer = setInterval(() => void turn(controller), POLL_INTERVAL_MS);
      closing.addEventListener("abort", end, { once: true });
      if (closing.aborted) end();
    },
    cancel: () => {
      leave();
    },
  });
  const headers = { "cache-control": "no-store", "x-accel-buffering": "no" };
  return { status: 200, type: "text/event-stream", body, headers, untagged: true, done: ended.promise };
}

const eventText = (newest: Newest): string => `data: ${JSON.stringify(newest)}\n\n`;
