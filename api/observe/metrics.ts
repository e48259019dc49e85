import type { Kind } from "../model/decision.ts";

/** What is counted; names and help are the same on every platform. */
export const METRICS = {
  requests: {
    name: "nodewise_http_requests_total",
    help: "Requests by route, method and status",
    labels: ["route", "method", "status"],
  },
  duration: {
    name: "nodewise_http_request_duration_seconds",
    help: "Time from a request's first byte to its answer, by route",
    labels: ["route"],
  },
  decided: {
    name: "nodewise_decision_duration_seconds",
    help: "Time that the core took for one decision, by kind",
    labels: ["kind"],
  },
  refused: { name: "nodewise_refusals_total", help: "Decisions refused, by kind and code", labels: ["kind", "code"] },
  recorded: { name: "nodewise_history_rows_total", help: "Rows written to the history, by table", labels: ["table"] },
  historyFailed: {
    name: "nodewise_history_failures_total",
    help: "Uses of the history that failed, by code",
    labels: ["code"],
  },
} as const;

export interface Metrics {
  request(route: string, method: string, status: number, seconds: number): void;
  decided(kind: Kind, seconds: number): void;
  refused(kind: Kind, code: string): void;
  recorded(table: "decisions" | "snapshots" | "results", rows: number): void;
  historyFailed(code: string): void;
  /** The Prometheus text format. */
  render(): Promise<{ readonly type: string; readonly text: string }>;
}
