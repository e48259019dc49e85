import { METRICS, type Metrics } from "./metrics.ts";

const quoted = (value: string): string =>
  `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

/** Sums by their labels. Times become a summary: their sum and their count. */
class Family {
  readonly #name: string;
  readonly #help: string;
  readonly #type: "counter" | "summary";
  readonly #labels: readonly string[];
  readonly #sums = new Map<string, { sum: number; count: number }>();
  constructor(of: { name: string; help: string; labels: readonly string[] }, type: "counter" | "summary") {
    this.#name = of.name;
    this.#help = of.help;
    this.#labels = of.labels;
    this.#type = type;
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

/** Counts of this isolate since it started: Workers run many, so read them as a sample. Needs nothing of the platform. */
export function plainMetrics(): Metrics {
  const requests = new Family(METRICS.requests, "counter");
  const duration = new Family(METRICS.duration, "summary");
  const decided = new Family(METRICS.decided, "summary");
  const refused = new Family(METRICS.refused, "counter");
  const recorded = new Family(METRICS.recorded, "counter");
  const historyFailed = new Family(METRICS.historyFailed, "counter");
  const all = [requests, duration, decided, refused, recorded, historyFailed];
  return {
    request: (route, method, status, seconds) => {
      requests.add([route, method, String(status)], 1);
      duration.add([route], seconds);
    },
    decided: (kind, seconds) => decided.add([kind], seconds),
    refused: (kind, code) => refused.add([kind, code], 1),
    recorded: (table, rows) => recorded.add([table], rows),
    historyFailed: (code) => historyFailed.add([code], 1),
    render: async () => ({ type: "text/plain; version=0.0.4; charset=utf-8", text: all.map((f) => f.text()).join("") }),
  };
}
