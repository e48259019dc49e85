/** A metric of Prometheus' text format, with its samples. */
export interface TextFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly TextSample[];
}
export interface TextSample {
  /** The end of its name behind that of the metric: empty, or one of a histogram's `_bucket`, `_sum` and `_count`. */
  readonly suffix: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LABEL = /([a-zA-Z_][\w]*)="((?:[^"\\]|\\.)*)",?/gy;
const UNESCAPED: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

/** The families in an answer of `/metrics`. Metrics of another type are left out: OTLP has none for a summary that is computed here. */
export function familiesIn(text: string): readonly TextFamily[] {
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
