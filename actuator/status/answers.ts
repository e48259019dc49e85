import type { DaemonMetrics } from "./metrics.ts";
import type { NodeStatus } from "./node-status.ts";

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}
export interface AnswerSources {
  readonly status: () => NodeStatus;
  readonly metrics: Pick<DaemonMetrics, "render">;
}

const PATHS = ["/healthz", "/readyz", "/v1/status", "/v1/pods", "/v1/events", "/metrics"];
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
export async function answer(target: string, { status, metrics }: AnswerSources): Promise<Answer> {
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
