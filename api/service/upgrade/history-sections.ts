import { byText } from "../../base/order.ts";
import { many } from "../../text/sentences/words.ts";
import { type Counts, changedOf, podsText, ReplayTally, representedText, type Tally } from "../replay/tally.ts";
import { answerNotes, KERNEL_DEFAULTS, type Section } from "./sections.ts";
import { type ChangedPod, type Example, PodCounter, type UpgradePage } from "./upgrade-page.ts";

/** The sum of many pages of the history. Its size depends on the number of nodes, kinds and changed pods. */
export interface HistorySum extends Tally, Pick<UpgradePage, "kernelDefaults"> {
  /** The pods with the most changed decisions first. */
  readonly pods: readonly ChangedPod[];
  /** The first examples of each kind. */
  readonly examples: readonly Example[];
}

/** The most examples of one kind over all pages. */
const EXAMPLES_OF_KIND = 3;

/** Adds up the pages of a history. */
export class HistoryCounter {
  readonly #counter = new ReplayTally();
  readonly #pods = new PodCounter();
  readonly #examples: Example[] = [];
  #kernelDefaults = 0;

  get counts(): Counts {
    return this.#counter.counts;
  }

  add(page: UpgradePage): void {
    this.#counter.add(page);
    this.#kernelDefaults += page.kernelDefaults;
    for (const pod of page.pods) this.#pods.add(pod);
    for (const example of page.examples) {
      const known = this.#examples.filter(({ kind }) => kind === example.kind);
      if (known.length < EXAMPLES_OF_KIND) this.#examples.push(example);
    }
  }

  sum(): HistorySum {
    const kernelDefaults = this.#kernelDefaults;
    return { ...this.#counter.tally(), kernelDefaults, pods: this.#pods.list(), examples: this.#examples };
  }
}

const number = (n: number): string => n.toLocaleString("en");
/** The most rows of one table; the others are counted. */
const MAX_ROWS = 20;

/** `12 of 2,504 recorded decisions would change`. */
export function historyLine({ counts, byVersion, kernelDefaults }: HistorySum, to: string): string {
  const own = byVersion.find(({ recordedUnder }) => recordedUnder === to)?.replayed ?? 0;
  const lost = counts.gone + counts.unreadable;
  if (counts.replayed + lost === 0) return "no decision of this time is recorded";
  const parts = [
    `${number(changedOf(counts))} of ${number(counts.replayed)} recorded decisions would change`,
    ...(kernelDefaults > 0 ? [`${number(kernelDefaults)} more ${KERNEL_DEFAULTS}`] : []),
    ...(own > 0 ? [`${number(own)} were decided as ${to} already`] : []),
    ...(lost > 0 ? [`${number(lost)} more could not be decided again`] : []),
    ...[representedText(counts)].filter((text) => text !== ""),
  ];
  return parts.join("; ");
}

/** The non-empty sections about the history. */
export const historySections = (sum: HistorySum): readonly Section[] =>
  [
    byName("kinds", "Recorded decisions by kind", "KIND", sum.byKind),
    byName("nodes", "Recorded decisions by node", "NODE", sum.byNode),
    byName("versions", "Recorded decisions by kubelet version", "KUBELET", underEach(sum)),
    verdicts(sum),
    pods(sum),
    examples(sum),
  ].filter(({ rows }) => rows.length > 0);

const underEach = ({ byVersion }: HistorySum): Readonly<Record<string, Counts>> =>
  Object.fromEntries(byVersion.map((counts) => [counts.recordedUnder, counts]));

function byName(id: string, title: string, column: string, all: Readonly<Record<string, Counts>>): Section {
  const sorted = Object.entries(all).sort(([a, x], [b, y]) => changedOf(y) - changedOf(x) || byText(a, b));
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
  title: "Pods with the most changed decisions",
  columns: [{ title: "POD" }, { title: "NODE" }, { title: "DECISIONS", align: "right" }, { title: "KINDS" }],
  rows: all.slice(0, MAX_ROWS).map(({ pod, node, count, byKind }) => ({
    cells: [pod, node, number(count), kindsText(byKind)],
    notes: [],
  })),
  ...moreOf(all.length - MAX_ROWS, "pod"),
});

/** `cgroups 3, eviction 1`. */
const kindsText = (byKind: ChangedPod["byKind"]): string =>
  Object.entries(byKind)
    .map(([kind, count]) => `${kind} ${number(count)}`)
    .join(", ");

const examples = ({ examples: all }: HistorySum): Section => ({
  id: "examples",
  title: "First examples of each kind",
  columns: [
    { title: "KIND" },
    { title: "NODE" },
    { title: "OF" },
    { title: "KUBELET" },
    { title: "RECORDED" },
    { title: "THEN" },
    { title: "DECISION" },
  ],
  rows: all.map((one) => ({
    cells: [
      one.kind,
      one.node,
      podsText(one) || "the node",
      one.recordedUnder,
      one.recordedVerdict,
      one.verdict ?? "(refused)",
      one.id,
    ],
    notes: answerNotes({ ...one, problem: one.problem === null ? null : `${one.problem.code}: ${one.problem.detail}` }),
  })),
});
