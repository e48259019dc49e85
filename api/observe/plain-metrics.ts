import type { Kind } from "../model/decision.ts";
import { AGREEMENT_VERDICTS, type AgreementVerdict, OUTCOME_KINDS, type OutcomeKind } from "../model/outcome.ts";

const SWEEP_OUTCOMES = ["done", "partial", "held", "failed"] as const;
type SweepOutcome = (typeof SWEEP_OUTCOMES)[number];

/**
 * The metrics that are counted; names and help are the same on every platform. `known`: series that start at 0, since Prometheus
 * sees no increase in a series' first sample, and an alert would miss the first event.
 */
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
  compared: {
    name: "nodewise_agreement_total",
    help: "What kubelets did, when it was first compared with what would have been decided, by kind and verdict",
    labels: ["kind", "verdict"],
    known: OUTCOME_KINDS.flatMap((kind) => AGREEMENT_VERDICTS.map((verdict) => ({ kind, verdict }))),
  },
  historyFailed: {
    name: "nodewise_history_failures_total",
    help: "Failed accesses to the history, by code",
    labels: ["code"],
  },
  removed: {
    name: "nodewise_history_removed_rows_total",
    help: "Rows that the retention removed from the history, by table",
    labels: ["table"],
  },
  logDelivered: {
    name: "nodewise_decision_log_delivered_total",
    help: "Decisions that the receiver of the decision log has accepted",
    labels: [],
    known: [{}],
  },
  logAttempts: {
    name: "nodewise_decision_log_attempts_total",
    help: "Attempts to deliver the decision log: taken, failed, too-large (what is sent next is smaller)",
    labels: ["outcome"],
    known: ["taken", "failed", "too-large"].map((outcome) => ({ outcome })),
  },
  logLost: {
    name: "nodewise_decision_log_lost_total",
    help: "Decisions that are not in the decision log: removed before they were delivered, damaged, or too-large for its receiver",
    labels: ["cause"],
    known: ["removed", "damaged", "too-large"].map((cause) => ({ cause })),
  },
  logWaiting: {
    name: "nodewise_decision_log_waiting",
    help: "Decisions that waited for the receiver of the decision log at the last attempt; absent: another process delivers",
    labels: [],
  },
  logLag: {
    name: "nodewise_decision_log_lag_seconds",
    help: "Age of the oldest decision that waits; absent: another process delivers",
    labels: [],
  },
  otlpFailed: {
    name: "nodewise_otlp_failed_exports_total",
    help: "Exports that the OpenTelemetry collector did not accept, by signal",
    labels: ["signal"],
    known: ["traces", "metrics"].map((signal) => ({ signal })),
  },
  otlpDropped: {
    name: "nodewise_otlp_dropped_spans_total",
    help: "Spans that the OpenTelemetry collector did not accept, or for which the queue was full",
    labels: [],
    known: [{}],
  },
  sweeps: {
    name: "nodewise_history_sweeps_total",
    help: "Sweeps of the history: done, partial (more is left), held (the clock has leapt: see the log), failed",
    labels: ["outcome"],
    known: SWEEP_OUTCOMES.map((outcome) => ({ outcome })),
  },
} as const;

export interface Metrics {
  request(route: string, method: string, status: number, seconds: number): void;
  decided(kind: Kind, seconds: number): void;
  refused(kind: Kind, code: string): void;
  recorded(table: "decisions" | "outcomes" | "snapshots" | "results", rows: number): void;
  /** A new outcome. A repeated comparison may give another result, which a counter cannot represent. */
  compared(kind: OutcomeKind, verdict: AgreementVerdict): void;
  historyFailed(code: string): void;
  /** `rows`: by table. */
  swept(outcome: SweepOutcome, rows: Readonly<Record<string, number>>): void;
  /** The Prometheus text format. */
  render(): Promise<{ readonly type: string; readonly text: string }>;
}

/** A label's value, quoted as in Prometheus' text format. */
export const quoted = (value: string): string =>
  `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

/** One of `METRICS`. */
export interface MetricForm<L extends string = string> {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly L[];
  /** The labels of known series, each in the order of `labels`. */
  readonly known?: readonly Readonly<Record<L, string>>[];
}

/** Sums by label values. Times become a summary: their sum and their count. */
class MetricFamily {
  readonly #name: string;
  readonly #help: string;
  readonly #type: "counter" | "summary";
  readonly #labels: readonly string[];
  readonly #sums = new Map<string, { sum: number; count: number }>();
  constructor(of: MetricForm, type: "counter" | "summary") {
    this.#name = of.name;
    this.#help = of.help;
    this.#labels = of.labels;
    this.#type = type;
    for (const labels of of.known ?? []) this.add(Object.values(labels), 0);
  }
  add(values: readonly string[], amount: number): void {
    const key = this.#labels.map((label, i) => `${label}=${quoted(values[i] ?? "")}`).join(",");
    const entry = this.#sums.get(key);
    if (entry === undefined) this.#sums.set(key, { sum: amount, count: 1 });
    else {
      entry.sum += amount;
      entry.count++;
    }
  }
  text(): string {
    const lines = [`# HELP ${this.#name} ${this.#help}`, `# TYPE ${this.#name} ${this.#type}`];
    for (const [labels, { sum, count }] of this.#sums) {
      if (this.#type === "counter") lines.push(`${this.#name}{${labels}} ${sum}`);
      else lines.push(`${this.#name}_sum{${labels}} ${sum}`, `${this.#name}_count{${labels}} ${count}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

/** Counts of this isolate since it started: Workers run many, so they are a sample. Needs nothing from the platform. */
export function plainMetrics(): Metrics {
  const requests = new MetricFamily(METRICS.requests, "counter");
  const duration = new MetricFamily(METRICS.duration, "summary");
  const decided = new MetricFamily(METRICS.decided, "summary");
  const refused = new MetricFamily(METRICS.refused, "counter");
  const recorded = new MetricFamily(METRICS.recorded, "counter");
  const compared = new MetricFamily(METRICS.compared, "counter");
  const historyFailed = new MetricFamily(METRICS.historyFailed, "counter");
  const removed = new MetricFamily(METRICS.removed, "counter");
  const sweeps = new MetricFamily(METRICS.sweeps, "counter");
  const all = [requests, duration, decided, refused, recorded, compared, historyFailed, removed, sweeps];
  return {
    request: (route, method, status, seconds) => {
      requests.add([route, method, String(status)], 1);
      duration.add([route], seconds);
    },
    decided: (kind, seconds) => decided.add([kind], seconds),
    refused: (kind, code) => refused.add([kind, code], 1),
    recorded: (table, rows) => recorded.add([table], rows),
    compared: (kind, verdict) => compared.add([kind, verdict], 1),
    historyFailed: (code) => historyFailed.add([code], 1),
    swept: (outcome, rows) => {
      sweeps.add([outcome], 1);
      for (const [table, count] of Object.entries(rows)) removed.add([table], count);
    },
    render: async () => ({ type: "text/plain; version=0.0.4; charset=utf-8", text: all.map((f) => f.text()).join("") }),
  };
}
