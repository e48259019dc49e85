import type { OutcomeFilter } from "../../../db/rows.ts";
import type { DecisionFilter } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import { isVerdict, type Kind } from "../../model/decision.ts";
import { filterOfVerdict, verdictLabel } from "../../model/kinds.ts";
import { knownVersion } from "../../profiles/index.ts";
import { decisionsCsv } from "../../text/csv.ts";
import { shellWord } from "../../text/shell-word.ts";
import { type Color, printable } from "../../text/style.ts";
import { type Column, table } from "../../text/table.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { type Listed, timesOf, tokenOf } from "../inputs/history-source.ts";
import {
  EXIT,
  type Fault,
  type Form,
  fault,
  isGood,
  type Outcome,
  printData,
  printText,
  type Terminal,
} from "../terminal.ts";

export interface HistoryFlags extends HistorySourceFlags {
  readonly node?: string;
  readonly kind?: Kind;
  readonly verdict?: string;
  readonly reason?: string;
  readonly pod?: string;
  readonly kubelet?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly output: Form | "csv";
}

export async function history(given: HistoryFlags, cli: Cli): Promise<Outcome> {
  const filter = filterOf(given, Date.now());
  if (!filter.ok) return filter;
  const { api, limit, output } = given;
  const print = async (decisions: Result<readonly Listed[], Fault>, hasOutcomes: HasOutcomes): Promise<Outcome> => {
    if (!decisions.ok) return decisions;
    printDecisions(decisions.value, output, cli);
    const instead = decisions.value.length === 0 ? await agreementInstead(given, filter.value, hasOutcomes) : null;
    if (instead !== null) cli.terminal.warn(`kubelets did that: ${instead}`, true);
    return ok(EXIT.ok);
  };
  if (api === undefined) {
    const { checkNode, withHistory, decisionsOfStore, storeHasOutcomes } = await import("../inputs/open-history.ts");
    return withHistory(storeSetting(given, cli), false, async (store) => {
      const known = await checkNode(store, filter.value.node);
      if (!known.ok) return known;
      return print(await decisionsOfStore(store, filter.value, limit), (of) => storeHasOutcomes(store, of));
    });
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // without the database drivers, which a client does not need and which take half a second to load
  const { decisionsOfApi, apiHasOutcomes } = await import("../inputs/history-api.ts");
  return print(await decisionsOfApi(api, token.value, filter.value, limit), (of) =>
    apiHasOutcomes(api, token.value, of),
  );
}

/** How far back a history is searched by default. */
const USUAL_PERIOD = { text: "30d", ms: 30 * 86_400_000 } as const;
type HasOutcomes = (filter: OutcomeFilter) => Promise<boolean>;
/** Points to the command that lists outcomes if a kubelet acted for the given reason: an outcome is no decision. */
async function agreementInstead(
  { since, until, api, dataDir, database }: HistoryFlags,
  { reason, node, pod, sinceMs, untilMs }: DecisionFilter,
  hasOutcomes: HasOutcomes,
): Promise<string | null> {
  if (reason === undefined) return null;
  const named = { reason, ...(node === undefined ? {} : { node }), ...(pod === undefined ? {} : { pod }) };
  const times = { sinceMs: sinceMs ?? Date.now() - USUAL_PERIOD.ms, ...(untilMs === undefined ? {} : { untilMs }) };
  if (!(await hasOutcomes({ ...named, ...times }))) return null;
  const options = { ...named, since: since ?? USUAL_PERIOD.text, until, api, "data-dir": dataDir, database };
  const words = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name} ${shellWord(value)}`],
  );
  return `nodewise agreement ${words.join(" ")}`;
}

function filterOf(given: HistoryFlags, nowMs: number): Result<DecisionFilter, Fault> {
  const { node, reason, pod } = given;
  const { kind, verdict } = filterOfVerdict(given.kind, given.verdict);
  const version = given.kubelet === undefined ? null : knownVersion("kubelet", given.kubelet);
  if (version?.ok === false) return fault(EXIT.badInput, `--kubelet: ${version.error.message}`);
  const times = timesOf(given, nowMs);
  if (!times.ok) return times;
  return ok({
    ...(node === undefined ? {} : { node }),
    ...(kind === undefined ? {} : { kind }),
    ...(verdict === undefined ? {} : { verdict }),
    ...(reason === undefined ? {} : { reason }),
    ...(pod === undefined ? {} : { pod }),
    ...(version === null ? {} : { kubelet: version.value.profile.version }),
    ...times.value,
  });
}

function printDecisions(decisions: readonly Listed[], output: Form | "csv", { terminal }: Cli): void {
  if (output === "csv") terminal.write(decisionsCsv(decisions));
  else if (output !== "table")
    printData(
      terminal,
      decisions.map((head) => ({ ...head, verdict: verdictLabel(head) })),
      output,
    );
  else if (decisions.length === 0) terminal.warn("no such decisions");
  else printText(terminal, decisionsTable(decisions, terminal));
}

/** Characters of an id, as on the pages; `history show` accepts them. */
const SHOWN_OF_ID = 12;

function decisionsTable(decisions: readonly Listed[], { columns: width, paint }: Terminal): string {
  const isAgain = decisions.some(({ times = 1 }) => times > 1);
  const columns: readonly Column[] = [
    { title: "DECIDED", giveUp: 3, giveUpTo: (time) => time.replace(/^\d{4}-(.+)T(.+)\.\d+Z$/, "$1 $2") },
    ...(isAgain ? ([{ title: "TIMES", align: "right" }] as const) : []),
    { title: "NODE", shrinkTo: 10 },
    { title: "KIND" },
    { title: "VERDICT" },
    { title: "REASON", giveUp: 5 },
    { title: "POD", giveUp: 4 },
    { title: "POLICY", giveUp: 2, giveUpTo: "nothing" },
    { title: "ID", giveUp: 1, giveUpTo: (id) => id.slice(0, SHOWN_OF_ID) },
  ];
  const color = (verdict: string): Color => (isVerdict(verdict) && isGood(verdict) ? "green" : "yellow");
  const rows = decisions.map(({ decidedAt, node, kind, verdict, reason, pod, policyVersion, id, ...last }) => ({
    cells: [
      last.lastDecidedAt ?? decidedAt,
      ...(isAgain ? [String(last.times ?? 1)] : []),
      printable(node),
      printable(kind),
      { text: printable(verdictLabel({ kind, verdict, pod })), color: color(verdict) },
      printable(reason ?? ""),
      pod === null ? "" : printable(`${pod.namespace}/${pod.name}`),
      printable(policyVersion),
      printable(id),
    ],
  }));
  return table(columns, rows, width, paint);
}
