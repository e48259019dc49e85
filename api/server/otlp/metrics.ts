import { type HrTime, ValueType } from "@opentelemetry/api";
import { millisToHrTime } from "@opentelemetry/core";
import { emptyResource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";

/** Units (UCUM) by the last word of a metric's name, before `_total`. */
const UNITS: readonly (readonly [RegExp, string])[] = [
  [/_seconds(?:_total)?$/, "s"],
  [/_bytes(?:_total)?$/, "By"],
  [/_ratio$/, "1"],
];
const unitOf = (name: string): string => UNITS.find(([end]) => end.test(name))?.[1] ?? "";

/** The metrics of `/metrics` as OTLP: the same names, labels and values. Counters start with the process. */
function metricsOf(text: string, nowMs: number): MetricData[] {
  const [startTime, endTime] = [millisToHrTime(performance.timeOrigin), millisToHrTime(nowMs)];
  return familiesIn(text).map((family): MetricData => {
    const { name, help, type } = family;
    const base = {
      descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
    };
    if (type === "histogram")
      return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints: histogramsOf(family, startTime, endTime) };
    const dataPoints = family.samples.map(({ labels, value }) => ({ startTime, endTime, attributes: labels, value }));
    return type === "counter"
      ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
      : { ...base, dataPointType: DataPointType.GAUGE, dataPoints };
  });
}

/** Prometheus' buckets include the smaller ones; OTLP's do not. */
function histogramsOf({ samples }: TextFamily, startTime: HrTime, endTime: HrTime): DataPoint<Histogram>[] {
  const series = new Map<string, { readonly attributes: Record<string, string>; readonly samples: TextSample[] }>();
  for (const sample of samples) {
    const { le: _, ...attributes } = sample.labels;
    const key = JSON.stringify(attributes);
    const known = series.get(key);
    if (known === undefined) series.set(key, { attributes, samples: [sample] });
    else known.samples.push(sample);
  }
  return [...series.values()].map(({ attributes, samples: own }) => {
    const one = (suffix: string): number => own.find((sample) => sample.suffix === suffix)?.value ?? 0;
    const bounds = own
      .filter(({ suffix, labels }) => suffix === "_bucket" && labels["le"] !== "+Inf")
      .map(({ labels, value }) => ({ le: Number(labels["le"]), value }))
      .sort((a, b) => a.le - b.le);
    const count = one("_count");
    const upTo = [...bounds.map(({ value }) => value), count];
    const counts = upTo.map((value, i) => value - (upTo[i - 1] ?? 0));
    const value: Histogram = { buckets: { boundaries: bounds.map(({ le }) => le), counts }, sum: one("_sum"), count };
    return { startTime, endTime, attributes, value };
  });
}

/** `read`: returns the text of `/metrics`. If it fails, no metrics are exported this time. */
export const producerOf = (read: () => Promise<string>, version: string): MetricProducer => ({
  collect: async () => {
    // the reader replaces it with its own
    const resource = emptyResource();
    try {
      const metrics = metricsOf(await read(), Date.now());
      return {
        resourceMetrics: { resource, scopeMetrics: [{ scope: { name: "nodewise", version }, metrics }] },
        errors: [],
      };
    } catch (error) {
      return { resourceMetrics: { resource, scopeMetrics: [] }, errors: [error] };
    }
  },
});

/** A metric of Prometheus' text format, with its samples. */
interface TextFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly TextSample[];
}
interface TextSample {
  /** The rest of the name after that of the metric: empty, or a histogram's `_bucket`, `_sum` or `_count`. */
  readonly suffix: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LABEL = /([a-zA-Z_][\w]*)="((?:[^"\\]|\\.)*)",?/gy;
const UNESCAPED: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

/** The families in the text of `/metrics`. Metrics of other types are left out: OTLP has no precomputed summaries. */
function familiesIn(text: string): readonly TextFamily[] {
  const families: (Omit<TextFamily, "samples"> & { readonly samples: TextSample[] })[] = [];
  let help = "";
  let last: (typeof families)[number] | undefined;
  for (const line of text.split("\n")) {
    const [, word, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (word === "HELP") help = rest.replaceAll("\\n", "\n").replaceAll("\\\\", "\\");
    else if (word === "TYPE") {
      last = isType(rest) ? { name, help, type: rest, samples: [] } : undefined;
      if (last !== undefined) families.push(last);
    } else if (last !== undefined && line.startsWith(last.name)) {
      const sample = sampleIn(line, last.name.length);
      if (sample !== null) last.samples.push(sample);
    }
  }
  return families;
}
const isType = (type: string): type is TextFamily["type"] => /^(?:counter|gauge|histogram)$/.test(type);

function sampleIn(line: string, from: number): TextSample | null {
  const [, suffix = ""] = /^(\w*)/.exec(line.slice(from)) ?? [];
  let at = from + suffix.length;
  const labels: Record<string, string> = {};
  if (line[at] === "{") {
    LABEL.lastIndex = at + 1;
    at++;
    for (let found = LABEL.exec(line); found !== null; found = LABEL.exec(line)) {
      labels[found[1] as string] = (found[2] as string).replace(/\\[\\"n]/g, (one) => UNESCAPED[one] as string);
      at = LABEL.lastIndex;
    }
    at++;
  }
  const value = numberIn(line.slice(at).trim().split(" ")[0] ?? "");
  return Number.isNaN(value) ? null : { suffix, labels, value };
}
const numberIn = (text: string): number =>
  text === "+Inf"
    ? Number.POSITIVE_INFINITY
    : text === "-Inf"
      ? Number.NEGATIVE_INFINITY
      : text === ""
        ? Number.NaN
        : Number(text);
