import { many } from "../../text/sentences/words.ts";
import { Counter, type Counts, type Tally } from "../replay/tally.ts";
import { answerNotes, type Section } from "./sections.ts";
import type { Example, UpgradePage } from "./upgrade-page.ts";

/** What many pages of the history told together. Grows with nodes, kinds and changed pods. */
export interface HistorySum extends Tally {
  readonly recordedUnder: Readonly<Record<string, number>>;
  /** The pods with the most changed decisions first. */
  readonly pods: readonly ChangedPod[];
  /** The first of each kind. */
  readonly examples: readonly Example[];
}
interface ChangedPod {
  readonly node: string;
  readonly pod: string;
  readonly count: number;
}

/** Examples of one kind that are kept of all pages. */
const EXAMPLES_OF_KIND = 3;

/** Adds up the pages of a history. */
export class HistoryCounter {
  readonly #counter = new Counter();
  readonly #versions = new Map<string, number>();
  readonly #pods = new Map<string, ChangedPod>();
  readonly #examples: Example[] = [];

  get counts(): Counts {
    return this.#counter.counts;
  }

  add(page: UpgradePage): void {
    this.#counter.add(page);
    for (const [version, count] of Object.entries(page.recordedUnder)) {
      this.#versions.set(version, (this.#versions.get(version) ?? 0) + count);
    }
    for (const { node, pod } of page.changed) {
      if (pod === null) continue;
      const name = `${pod.namespace}/${pod.name}`;
      const key = `${node} ${name}`;
      this.#pods.set(key, { node, pod: name, count: (this.#pods.get(key)?.count ?? 0) + 1 });
    }
    for (const example of page.examples) {
      const known = this.#examples.filter(({ kind }) => kind === example.kind);
      if (known.length < EXAMPLES_OF_KIND) this.#examples.push(example);
    }
  }

  sum(): HistorySum {
    const pods = [...this.#pods.values()].sort((a, b) => b.count - a.count || (a.pod < b.pod ? -1 : 1));
    const recordedUnder = Object.fromEntries([...this.#versions].sort(([a], [b]) => (a < b ? -1 : 1)));
    return { ...this.#counter.tally(), recordedUnder, pods, examples: this.#examples };
  }
}

const number = (n: number): string => n.toLocaleString("en");
const changedOf = ({ differs, refused }: Counts): number => differs + refused;
/** Rows of one table; the others are counted. */
const MAX_ROWS = 20;

/** `12 of 2,504 recorded decisions would be others`. */
export function historyLine({ counts, recordedUnder }: HistorySum, to: string): string {
  const own = recordedUnder[to] ?? 0;
  const lost = counts.gone + counts.unreadable;
  if (counts.replayed + lost === 0) return "no decision of this time is recorded";
  const parts = [
    `${number(changedOf(counts))} of ${number(counts.replayed)} recorded decisions would be others`,
    ...(own > 0 ? [`${number(own)} were decided as ${to} already`] : []),
    ...(lost > 0 ? [`${number(lost)} more could not be decided again`] : []),
  ];
  return parts.join("; ");
}

/** The history's parts that have something to say. */
export const historySections = (sum: HistorySum): readonly Section[] =>
  [
    byName("kinds", "Recorded decisions by kind", "KIND", sum.byKind),
    byNode(sum),
    verdicts(sum),
    pods(sum),
    examples(sum),
  ].filter(({ rows }) => rows.length > 0);

const byNode = ({ byNode: nodes }: HistorySum): Section => byName("nodes", "Recorded decisions by node", "NODE", nodes);

function byName(id: string, title: string, column: string, all: Readonly<Record<string, Counts>>): Section {
  const sorted = Object.entries(all).sort(([a, x], [b, y]) => changedOf(y) - changedOf(x) || (a < b ? -1 : 1));
  const rows = sorted.slice(0, MAX_ROWS).map(([name, counts]) => ({
    cells: [
      name,
      number(counts.replayed),
      number(counts.differs),
      number(counts.refused),
      number(counts.gone + counts.unreadable),
    ],
    ...(changedOf(counts) > 0 ? { tone: "yellow" as const } : {}),
    notes: [],
  }));
  const titles = ["REPLAYED", "DIFFERS", "REFUSED", "LOST"].map((name) => ({ title: name, align: "right" as const }));
  return { id, title, columns: [{ title: column }, ...titles], rows, ...moreOf(sorted.length - rows.length, column) };
}

const moreOf = (others: number, column: string): Pick<Section, "more"> =>
  others <= 0 ? {} : { more: `and ${many(others, `more ${column.toLowerCase()}`)}, with no more changes` };

const verdicts = ({ verdicts: all }: HistorySum): Section => ({
  id: "verdicts",
  title: "How their verdicts change",
  columns: [{ title: "KIND" }, { title: "RECORDED" }, { title: "THEN" }, { title: "DECISIONS", align: "right" }],
  rows: all.slice(0, MAX_ROWS).map(({ kind, recorded, replayed, count }) => ({
    cells: [kind, recorded, replayed ?? "(refused)", number(count)],
    ...(recorded === replayed ? {} : { tone: "yellow" as const }),
    notes: [],
  })),
});

const pods = ({ pods: all }: HistorySum): Section => ({
  id: "pods",
  title: "Pods of which most is decided otherwise",
  columns: [{ title: "POD" }, { title: "NODE" }, { title: "DECISIONS", align: "right" }],
  rows: all.slice(0, MAX_ROWS).map(({ pod, node, count }) => ({ cells: [pod, node, number(count)], notes: [] })),
  ...moreOf(all.length - MAX_ROWS, "pod"),
});

const examples = ({ examples: all }: HistorySum): Section => ({
  id: "examples",
  title: "First examples of each kind",
  columns: [
    { title: "KIND" },
    { title: "NODE" },
    { title: "OF" },
    { title: "RECORDED" },
    { title: "THEN" },
    { title: "DECISION" },
  ],
  rows: all.map((one) => ({
    cells: [
      one.kind,
      one.node,
      one.pod === null ? "the node" : `${one.pod.namespace}/${one.pod.name}`,
      one.recordedVerdict,
      one.verdict ?? "(refused)",
      one.id,
    ],
    notes: answerNotes({ ...one, problem: one.problem === null ? null : `${one.problem.code}: ${one.problem.detail}` }),
  })),
});
