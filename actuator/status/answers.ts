import type { Result } from "../../api/model/result.ts";
import type { HistoryAsked } from "../probes/history.ts";
import type { DaemonMetrics } from "./metrics.ts";
import type { NodeStatus } from "./node-status.ts";

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}
export interface AnswerSources {
  readonly status: () => NodeStatus;
  /** What became of the probes, newest first; absent: nobody keeps it here. Error: it cannot be read. */
  readonly probeHistory?: (asked: HistoryAsked) => Result<readonly object[], string>;
  readonly metrics: Pick<DaemonMetrics, "render">;
}

const PATHS = [
  "/healthz",
  "/readyz",
  "/v1/status",
  "/v1/pods",
  "/v1/events",
  "/v1/probes",
  "/v1/probes/history",
  "/metrics",
];
/** Entries of a history in one answer. */
const MOST_ENTRIES = 1000;
const USUAL_ENTRIES = 50;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

const json = (value: unknown, status = 200): Answer => ({
  status,
  type: "application/json",
  text: `${JSON.stringify(value)}\n`,
});
/** As the API tells problems. */
export const problem = (status: number, code: string, detail: string): Answer => ({
  ...json({ status, code, detail }, status),
  type: "application/problem+json",
});

/** What keeps the daemon from its work; empty: it is ready. */
export function notReady({ pass, runtime, mode, runsPods }: NodeStatus): readonly string[] {
  return [
    ...(pass === null ? ["the first pass has not ended yet"] : []),
    // who runs no pods needs none
    ...(runtime === null && mode === "enforce" && runsPods !== false ? ["the container runtime does not answer"] : []),
  ];
}

/** Answers a path with its query, such as `/v1/events?since=2026-01-31T12:00:00Z`. */
export async function answer(target: string, { status, metrics, probeHistory }: AnswerSources): Promise<Answer> {
  const [path = "", ...query] = target.split("?");
  switch (path) {
    case "/healthz":
      return json({ status: "ok" });
    case "/readyz": {
      const reasons = notReady(status());
      return json({ ready: reasons.length === 0, reasons }, reasons.length === 0 ? 200 : 503);
    }
    case "/v1/status":
      return json(status());
    case "/v1/pods": {
      const { at, nodeName, pods, refusedManifests } = status();
      return json({ at, nodeName, pods, refusedManifests });
    }
    case "/v1/events":
      return events(status(), new URLSearchParams(query.join("?")).get("since"));
    case "/v1/probes": {
      const { at, nodeName, probes } = status();
      return json({ at, nodeName, probes: probes ?? null });
    }
    case "/v1/probes/history":
      return history(status(), new URLSearchParams(query.join("?")), probeHistory);
    case "/metrics": {
      const { type, text } = await metrics.render(status());
      return { status: 200, type, text };
    }
    default:
      return problem(404, "not_found", `there is no such path here, but ${PATHS.join(", ")}`);
  }
}

/** Those that were seen then or later. */
function events({ at, nodeName, events }: NodeStatus, since: string | null): Answer {
  const sinceMs = since === null ? Number.NEGATIVE_INFINITY : TIME.test(since) ? Date.parse(since) : Number.NaN;
  if (Number.isNaN(sinceMs)) return problem(400, "bad_request", "since: expected a time such as 2026-01-31T12:00:00Z");
  return json({ at, nodeName, events: events.filter((event) => Date.parse(event.at) >= sinceMs) });
}

/** `limit` entries of a `pod`, or of all. */
function history({ at, nodeName }: NodeStatus, asked: URLSearchParams, read: AnswerSources["probeHistory"]): Answer {
  const limit = Number(asked.get("limit") ?? USUAL_ENTRIES);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_ENTRIES)
    return problem(400, "bad_request", `limit: expected a whole number from 1 to ${MOST_ENTRIES}`);
  const entries = read?.({ limit, pod: asked.get("pod") ?? undefined });
  if (entries?.ok === false) return problem(500, "internal", entries.error);
  return json({ at, nodeName, entries: entries?.value ?? [] });
}
