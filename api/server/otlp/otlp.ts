import { DiagLogLevel, diag } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, resourceFromAttributes, serviceNameEnvDetector } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader, type PushMetricExporter } from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Tracing } from "../../dependencies.ts";
import type { Log } from "../../observe/log.ts";
import type { OtlpMetrics } from "../../observe/node-metrics.ts";
import { producerOf } from "./metrics.ts";
import { tracingWith } from "./tracing.ts";

/** The names of OTEL_TRACES_SAMPLER. */
export type SamplerName = `${"" | "parentbased_"}${"always_on" | "always_off" | "traceidratio"}`;

/** Where traces and metrics go. OpenTelemetry's exporters read the rest from `OTEL_*` in the environment. */
export interface OtlpSetting {
  /** Without `/v1/traces`; null to use the environment. */
  readonly url: string | null;
  readonly traces: boolean;
  readonly metrics: boolean;
  readonly sampler: SamplerName;
  /** OTEL_TRACES_SAMPLER_ARG, 0 to 1. */
  readonly ratio: number;
  /** The time between two exports of the metrics. */
  readonly intervalMs: number;
  readonly version: string;
}

export interface Otlp {
  /** Empty if no traces are exported. */
  readonly ports: { readonly tracing?: Tracing };
  /** Starts exporting the metrics that `read` returns: the text of `/metrics`. */
  exportMetrics(read: () => Promise<string>): void;
  /** Sends what is pending, for at most `CLOSE_MS`, and logs what could not be sent. */
  close(): Promise<void>;
}

/** The most spans that wait for the collector; further ones are dropped and counted. */
const MAX_WAITING = 2048;
const CLOSE_MS = 3_000;
/** How often the log repeats that the collector accepts nothing. */
const REMIND_MS = 60_000;

const SAMPLERS: Readonly<Record<SamplerName, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
};

/** Never waits for the collector: what cannot be sent is dropped, counted and logged. */
export function startOtlp(setting: OtlpSetting, log: Log, counts: OtlpMetrics): Otlp {
  const { url, version } = setting;
  const failureLog = new ExportFailureLog(log);
  // the exporters' own messages contain response bodies
  diag.setLogger({ error() {}, warn() {}, info() {}, debug() {}, verbose() {} }, DiagLogLevel.NONE);
  const resource = resourceFromAttributes({
    "service.name": "nodewise-api",
    "service.version": version,
    "service.instance.id": crypto.randomUUID(),
  }).merge(detectResources({ detectors: [envDetector, serviceNameEnvDetector] }));
  const at = (signal: string) => (url === null ? {} : { url: `${url}/v1/${signal}` });
  const closing: (() => Promise<void>)[] = [];
  let spans: CountedSpans | null = null;
  let areMetricsSent = !setting.metrics;
  let tracing: Tracing | null = null;
  if (setting.traces) {
    const sampler = SAMPLERS[setting.sampler](setting.ratio);
    spans = new CountedSpans(new OTLPTraceExporter(at("traces")), counts, failureLog);
    const provider = new TracerProvider({ resource, spanProcessors: [spans], sampler });
    tracing = tracingWith(provider.getTracer("nodewise", version));
    closing.push(() => provider.shutdown());
  }
  const exportMetrics = (read: () => Promise<string>): void => {
    if (!setting.metrics) return;
    const exporter = new OTLPMetricExporter(at("metrics"));
    watch(exporter, (result) => {
      areMetricsSent = result.code === ExportResultCode.SUCCESS;
      failureLog.observe("metrics", result, () => counts.failed("metrics"));
    });
    const reader = new PeriodicExportingMetricReader({
      exporter,
      metricProducers: [producerOf(read, version)],
      exportIntervalMillis: setting.intervalMs,
      exportTimeoutMillis: Math.min(setting.intervalMs, 30_000),
    });
    const provider = new MeterProvider({ resource, readers: [reader] });
    closing.push(() => provider.shutdown());
  };
  const close = async (): Promise<void> => {
    const before = spans?.dropped ?? 0;
    areMetricsSent = !setting.metrics;
    const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
    await Promise.race([late, Promise.allSettled(closing.map((end) => end()))]);
    const lost = spans === null ? 0 : spans.waiting + spans.dropped - before;
    if (lost > 0 || !areMetricsSent)
      log.warn(
        { spans: lost, metrics: areMetricsSent ? "delivered" : "not delivered" },
        "the API stops before its last telemetry is delivered: it is lost",
      );
  };
  return { ports: tracing === null ? {} : { tracing }, exportMetrics, close };
}

/** Calls `onEnd` with the result of each export. */
function watch(
  exporter: SpanExporter | PushMetricExporter,
  onEnd: (result: ExportResult, count: number) => void,
): void {
  const send = exporter.export.bind(exporter) as (batch: unknown, done: (result: ExportResult) => void) => void;
  exporter.export = (batch: unknown, done: (result: ExportResult) => void): void =>
    send(batch, (result) => {
      onEnd(result, Array.isArray(batch) ? batch.length : 0);
      done(result);
    });
}

/** Sends spans in batches, and counts dropped ones. */
class CountedSpans implements SpanProcessor {
  readonly #inner: BatchSpanProcessor;
  readonly #counts: OtlpMetrics;
  readonly #failureLog: ExportFailureLog;
  #waiting = 0;
  #dropped = 0;

  constructor(exporter: SpanExporter, counts: OtlpMetrics, failureLog: ExportFailureLog) {
    this.#counts = counts;
    this.#failureLog = failureLog;
    watch(exporter, (result, count) => {
      this.#waiting -= count;
      failureLog.observe("traces", result, () => {
        counts.failed("traces");
        this.#drop(count);
      });
    });
    this.#inner = new BatchSpanProcessor({ exporter, maxQueueSize: 2 * MAX_WAITING });
  }
  /** Spans that are not sent yet, and dropped ones. */
  get waiting(): number {
    return this.#waiting;
  }
  get dropped(): number {
    return this.#dropped;
  }
  #drop(count: number): void {
    this.#dropped += count;
    this.#counts.dropped(count);
  }
  onStart(): void {}
  onEnd(span: ReadableSpan): void {
    if (this.#waiting < MAX_WAITING) {
      this.#waiting++;
      this.#inner.onEnd(span);
    } else {
      this.#drop(1);
      this.#failureLog.warn("traces", `more than ${MAX_WAITING} spans wait`);
    }
  }
  forceFlush(): Promise<void> {
    return this.#inner.forceFlush();
  }
  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }
}

/** The exporters' messages that are logged; others may contain a response. */
const WORDS: Readonly<Record<string, string>> = {
  "Request timed out": "no answer in time",
  "Concurrent export limit reached": "earlier ones still wait for an answer",
};

/** Logs, at long intervals, that the collector accepts nothing, and that it accepts data again. */
class ExportFailureLog {
  readonly #log: Log;
  readonly #loggedMs = new Map<string, number>();
  constructor(log: Log) {
    this.#log = log;
  }
  observe(signal: "traces" | "metrics", { code, error }: ExportResult, onFailure: () => void): void {
    if (code === ExportResultCode.SUCCESS) {
      if (this.#loggedMs.delete(signal)) this.#log.info({ signal }, "telemetry delivered again");
      return;
    }
    onFailure();
    const { code: status } = (error ?? {}) as { readonly code?: unknown };
    this.warn(signal, String(status ?? WORDS[error?.message ?? ""] ?? error?.name ?? "unknown"));
  }
  warn(signal: "traces" | "metrics", reason: string): void {
    const now = performance.now();
    const loggedMs = this.#loggedMs.get(signal);
    if (loggedMs !== undefined && now - loggedMs < REMIND_MS) return;
    this.#loggedMs.set(signal, now);
    this.#log.warn({ signal, reason }, "telemetry not delivered: it is dropped");
  }
}
