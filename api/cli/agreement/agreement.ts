import type { OutcomeFilter } from "../../../db/rows.ts";
import { ok, type Result } from "../../base/result.ts";
import type { AgreementPage, KindAgreement, ListedOutcome } from "../../http/agreement.ts";
import type { AgreementVerdict, Comparison, OutcomeKind, Side, SideValue } from "../../model/outcome.ts";
import { csvText, OUTCOME_COLUMNS, outcomeCells } from "../../text/csv.ts";
import { shareText } from "../../text/size.ts";
import { type Color, clip, type Paint, printable, wrap } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { firstOf, type Times, timesOf, tokenOf } from "../inputs/history-source.ts";
import { EXIT, type Fault, type Form, type Outcome, printData, printText, type Terminal } from "../terminal.ts";

export interface AgreementFlags extends HistorySourceFlags {
  readonly node?: string;
  readonly kind?: OutcomeKind;
  readonly reason?: string;
  readonly pod?: string;
  readonly namespace?: string;
  readonly verdict?: AgreementVerdict | "all";
  readonly since: string;
  readonly until?: string;
  readonly limit: number;
  readonly output: Form | "csv";
}

type Ask = (query: { readonly limit: number; readonly pageToken?: string }) => Promise<Result<AgreementPage, Fault>>;
interface Source {
  readonly ask: Ask;
  /** Errors: no such node. */
  knows(node: string): Promise<Result<unknown, Fault>>;
}

/** `nodewise agreement`: how often decisions agree with kubelets, from a data directory or a running API. */
export async function agreement(given: AgreementFlags, cli: Cli): Promise<Outcome> {
  const times = timesOf(given, Date.now());
  if (!times.ok) return times;
  const { api } = given;
  const filter = filterOf(given, times.value);
  if (api === undefined) {
    const { checkNode, storeFault, withHistory } = await import("../inputs/open-history.ts");
    const { agreementPage } = await import("../../http/agreement.ts");
    return withHistory(storeSetting(given, cli), false, (store) => {
      const ask: Ask = async (query) => {
        const page = await agreementPage(store, { ...filter, ...query });
        return page.ok ? page : storeFault(page);
      };
      return print(given, filter, cli, { ask, knows: (node) => checkNode(store, node) });
    });
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const { apiOf, timeText } = await import("../inputs/history-api.ts");
  const get = apiOf(api, token.value);
  if (!get.ok) return get;
  const { sinceMs, untilMs, ...rest } = filter;
  const asked = { ...rest, since: timeText(sinceMs), until: timeText(untilMs) };
  return print(given, filter, cli, {
    ask: ({ limit, pageToken }) =>
      get.value<AgreementPage>("v1/agreement", { ...asked, limit: String(limit), pageToken }),
    knows: (node) => get.value(`v1/nodes/${encodeURIComponent(node)}`, {}),
  });
}

/** With --reason or --pod all outcomes are listed; otherwise only those that differ. */
function filterOf(given: AgreementFlags, times: Times): OutcomeFilter {
  const { node, kind, reason, pod, namespace, output } = given;
  const isNarrow = [reason, pod, namespace].some((one) => one !== undefined) || output === "csv";
  const { verdict = isNarrow ? "all" : "differs" } = given;
  return {
    ...(node === undefined ? {} : { node }),
    ...(kind === undefined ? {} : { kind }),
    ...(reason === undefined ? {} : { reason }),
    ...(pod === undefined ? {} : { pod }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(verdict === "all" ? {} : { verdict }),
    ...times,
  };
}

async function print(
  { limit, output }: AgreementFlags,
  { verdict, node }: OutcomeFilter,
  { terminal }: Cli,
  { ask, knows }: Source,
): Promise<Outcome> {
  let kinds: readonly KindAgreement[] = [];
  const listed = await firstOf(limit, async (query) => {
    const page = await ask(query);
    if (!page.ok) return page;
    kinds = page.value.kinds;
    return ok({ items: page.value.outcomes, nextPageToken: page.value.nextPageToken });
  });
  if (!listed.ok) return listed;
  const known = node === undefined || kinds.length > 0 ? ok(null) : await knows(node);
  if (!known.ok) return known;
  const exit = kinds.some(({ differs }) => differs > 0) ? EXIT.negative : EXIT.ok;
  if (output === "csv") terminal.write(csvText(OUTCOME_COLUMNS, listed.value.map(outcomeCells)));
  else if (output !== "table") printData(terminal, { kinds, outcomes: listed.value }, output);
  else if (kinds.length === 0) terminal.warn("no outcomes of kubelets are recorded for this");
  else {
    printText(terminal, kindsTable(kinds, terminal));
    const of = kinds.reduce((sum, kind) => sum + countOf(kind, verdict), 0);
    for (const one of listed.value) printText(terminal, `\n${outcomeText(one, terminal)}`);
    if (of > listed.value.length) terminal.warn(`${of - listed.value.length} more; --limit shows them`);
  }
  return ok(exit);
}

function countOf({ agrees, differs, notComparable }: KindAgreement, verdict: string | undefined): number {
  const counts: Readonly<Record<string, number>> = { agrees, differs, "not-comparable": notComparable };
  return counts[verdict ?? ""] ?? agrees + differs + notComparable;
}

const BAR = 20;
/** Whole cells; at least one unless the count is 0. */
const cells = (count: number, of: number): number => (count === 0 ? 0 : Math.max(1, Math.round((count / of) * BAR)));

function kindsTable(kinds: readonly KindAgreement[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "KIND" },
    { title: "AGREES", align: "right" },
    { title: "DIFFERS", align: "right" },
    { title: "NOT COMPARABLE", align: "right" },
    { title: "SHARE", align: "right" },
    { title: "", giveUp: 1 },
  ] as const;
  const rows = kinds.map(({ kind, agrees, differs, notComparable, share }) => {
    const all = agrees + differs + notComparable;
    const bad = cells(differs, all);
    const open = Math.min(cells(notComparable, all), BAR - bad);
    const bar = `${paint("green", "█".repeat(BAR - bad - open))}${paint("red", "×".repeat(bad))}${paint("dim", "·".repeat(open))}`;
    return {
      cells: [
        printable(kind),
        String(agrees),
        differs === 0 ? "0" : { text: String(differs), color: "red" as const },
        String(notComparable),
        share === null ? "" : shareText(share),
        bar,
      ],
    };
  });
  return `${table(columns, rows, width, paint)}█ agrees   × differs   · not comparable; the share is of those that could be compared\n`;
}

const COLORS: Readonly<Record<AgreementVerdict, Color>> = { agrees: "green", differs: "red", "not-comparable": "dim" };

/** One outcome: its time, the first field that differs or why it is not comparable, and both sides. */
export function outcomeText(
  { at, node, kind, verdict, pod, comparison }: ListedOutcome,
  { columns, paint }: Terminal,
): string {
  const who = pod === null ? [] : [`${pod.namespace}/${pod.name}`];
  const word = paint(COLORS[verdict as AgreementVerdict] ?? "dim", printable(verdict));
  const head = `${[at, node, kind, ...who].map(printable).join("  ")}  ${word}\n`;
  if (comparison === null) return `${head}  (another version recorded it)\n`;
  const width = Math.max(40, columns) - 2;
  return `${head}${linesOf(comparison, width, paint)
    .map((line) => `  ${line}\n`)
    .join("")}`;
}

function linesOf(comparison: Comparison, width: number, paint: Paint): readonly string[] {
  const { kubelet, nodewise, measured, difference, why, snapshotId, snapshotAgeMs, policyVersion } = comparison;
  const lines: string[] = [];
  if (difference !== null) {
    const { field } = difference;
    lines.push(
      `${printable(field)}: kubelet ${valueText(difference.kubelet)}, nodewise ${valueText(difference.nodewise)}`,
    );
  }
  if (why !== null) {
    const missing = why.missing.length === 0 ? "" : `: ${why.missing.join(", ")}`;
    lines.push(...wrap(printable(`${why.code}${missing}; ${why.message}`), width));
  }
  const sideLine = (name: string, side: Side): string =>
    clip(
      `${name}  ${Object.entries(side)
        .map(([field, value]) => `${printable(field)} ${valueText(value)}`)
        .join(", ")}`,
      width,
    );
  lines.push(sideLine("kubelet: ", kubelet));
  if (nodewise !== null) lines.push(sideLine("nodewise:", nodewise));
  for (const { field, kubelet: theirs, nodewise: ours } of measured) {
    const line = `measured: ${printable(field)}: kubelet ${valueText(theirs)}, nodewise ${valueText(ours)}`;
    lines.push(paint("dim", clip(line, width)));
  }
  if (snapshotId !== null) {
    const age = snapshotAgeMs === null ? "" : `, ${durationText(snapshotAgeMs)} before`;
    lines.push(
      paint(
        "dim",
        `snapshot ${printable(snapshotId)}${age}${policyVersion === null ? "" : `, ${printable(policyVersion)}`}`,
      ),
    );
  }
  return lines;
}

function valueText(value: SideValue): string {
  if (value === null || value === "") return "–";
  return printable(Array.isArray(value) ? value.join(" ") : String(value));
}
