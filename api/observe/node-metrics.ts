import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { METRICS, type MetricForm, type Metrics } from "./plain-metrics.ts";

function counter<L extends string>(registry: Registry, { name, help, labels, known = [] }: MetricForm<L>): Counter<L> {
  const made = new Counter({ name, help, labelNames: labels, registers: [registry] });
  for (const one of known) made.inc(one, 0);
  return made;
}
const histogram = <L extends string>(registry: Registry, of: MetricForm<L>, buckets: number[]) =>
  new Histogram({ name: of.name, help: of.help, labelNames: of.labels, buckets, registers: [registry] });

/**
 * A registry with the metrics of the Node process. Gauges whose names end with `_total`, which Prometheus takes for counters, are
 * left out: `nodejs_active_handles` and similar ones report the same by type.
 */
export function processRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of ["handles", "requests", "resources"]) registry.removeSingleMetric(`nodejs_active_${name}_total`);
  return registry;
}

/** Metrics of the delivery of the decision log. */
export interface LogMetrics {
  delivered(events: number): void;
  attempted(outcome: "taken" | "failed" | "too-large"): void;
  lost(cause: "removed" | "damaged" | "too-large", events: number): void;
  /** `sinceMs`: when the oldest pending decision was made; null if none is pending. `state` null: another process delivers. */
  waits(state: { readonly events: number; readonly sinceMs: number | null } | null): void;
}

function logMetrics(registry: Registry): LogMetrics {
  const delivered = counter(registry, METRICS.logDelivered);
  const attempts = counter(registry, METRICS.logAttempts);
  const lost = counter(registry, METRICS.logLost);
  let state: Parameters<LogMetrics["waits"]>[0] = null;
  const gauge = ({ name, help }: MetricForm, value: (known: NonNullable<typeof state>) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        if (state === null) this.remove();
        else this.set(value(state));
      },
    });
  gauge(METRICS.logWaiting, ({ events }) => events);
  gauge(METRICS.logLag, ({ sinceMs }) => (sinceMs === null ? 0 : Math.max(0, (Date.now() - sinceMs) / 1000)));
  return {
    delivered: (events) => delivered.inc(events),
    attempted: (outcome) => attempts.inc({ outcome }),
    lost: (cause, events) => lost.inc({ cause }, events),
    waits: (now) => {
      state = now;
    },
  };
}

/** Metrics of telemetry over OTLP. */
export interface OtlpMetrics {
  failed(signal: "traces" | "metrics"): void;
  dropped(spans: number): void;
}

/** With metrics that only some APIs have: each is added when first requested, at most once. */
export interface NodeMetrics extends Metrics {
  decisionLog(): LogMetrics;
  otlp(): OtlpMetrics;
}

/** The metrics in a registry of their own, together with those of the Node process. */
export function nodeMetrics(): NodeMetrics {
  const registry = processRegistry();
  const requests = counter(registry, METRICS.requests);
  const duration = histogram(registry, METRICS.duration, [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10]);
  const decided = histogram(registry, METRICS.decided, [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25]);
  const refused = counter(registry, METRICS.refused);
  const recorded = counter(registry, METRICS.recorded);
  const compared = counter(registry, METRICS.compared);
  const historyFailed = counter(registry, METRICS.historyFailed);
  const removed = counter(registry, METRICS.removed);
  const sweeps = counter(registry, METRICS.sweeps);
  return {
    request: (route, method, status, seconds) => {
      requests.inc({ route, method, status }, 1);
      duration.observe({ route }, seconds);
    },
    decided: (kind, seconds) => decided.observe({ kind }, seconds),
    refused: (kind, code) => refused.inc({ kind, code }),
    recorded: (table, rows) => recorded.inc({ table }, rows),
    compared: (kind, verdict) => compared.inc({ kind, verdict }),
    historyFailed: (code) => historyFailed.inc({ code }),
    swept: (outcome, rows) => {
      sweeps.inc({ outcome });
      for (const [table, count] of Object.entries(rows)) removed.inc({ table }, count);
    },
    decisionLog: () => logMetrics(registry),
    otlp: () => {
      const failed = counter(registry, METRICS.otlpFailed);
      const dropped = counter(registry, METRICS.otlpDropped);
      return { failed: (signal) => failed.inc({ signal }), dropped: (spans) => dropped.inc(spans) };
    },
    render: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  };
}
