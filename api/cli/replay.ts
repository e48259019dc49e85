import type { Kind } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import type { Cli } from "./cli.ts";
import { stateHome } from "./directories.ts";
import { EXIT, type Fault, fault, type Outcome } from "./exit.ts";
import { timesOf, tokenOf } from "./history.ts";
import { type ChangeGiven, readChange } from "./replay-change.ts";
import { progressOn } from "./replay-progress.ts";
import { ReplayReport } from "./replay-report.ts";
import type { Pages, Wanted } from "./replay-source.ts";
import { stopSignal } from "./stop-signal.ts";

export interface ReplayGiven extends ChangeGiven {
  readonly dataDir?: string;
  readonly api?: string;
  readonly tokenFile?: string;
  readonly node?: string;
  readonly kind?: Kind;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly all?: boolean;
  readonly json?: boolean;
  readonly pageToken?: string;
}

export async function replay(given: ReplayGiven, cli: Cli): Promise<Outcome> {
  const wanted = await wantedOf(given, Date.now());
  if (!wanted.ok) return wanted;
  const { api } = given;
  if (api === undefined) {
    const [{ withHistory }, { pagesOfStore }] = await Promise.all([
      import("./open-history.ts"),
      import("./replay-source.ts"),
    ]);
    return withHistory(given.dataDir ?? stateHome(cli.env), false, async (store) => {
      const pages = await pagesOfStore(store, wanted.value);
      return pages.ok ? run(pages.value, given, cli) : pages;
    });
  }
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // without the history's drivers, as a client needs none
  const { pagesOfApi } = await import("./replay-api.ts");
  const pages = pagesOfApi(api, token.value, wanted.value);
  return pages.ok ? run(pages.value, given, cli) : pages;
}

async function wantedOf(given: ReplayGiven, nowMs: number): Promise<Result<Wanted, Fault>> {
  const { node, kind, since, until } = given;
  const times = timesOf(given, nowMs);
  if (!times.ok) return times;
  const { sinceMs, untilMs } = times.value;
  if (sinceMs !== undefined && sinceMs > (untilMs ?? nowMs)) {
    return fault(EXIT.badInput, `--since ${since}: is later than ${until === undefined ? "now" : `--until ${until}`}`);
  }
  const change = await readChange(given);
  if (!change.ok) return change;
  const filter = { ...times.value, ...(node === undefined ? {} : { node }), ...(kind === undefined ? {} : { kind }) };
  return ok({ filter, change: change.value });
}

/** Page after page, in constant memory, until the end, a failure, or a signal. */
async function run(pages: Pages, given: ReplayGiven, cli: Cli): Promise<Outcome> {
  let isStopped = false;
  void stopSignal().then(() => {
    isStopped = true;
  });
  const progress = progressOn(process.stderr, () => performance.now());
  const report = new ReplayReport(given, cli.terminal);
  let token = given.pageToken;
  while (true) {
    const page = await pages(token);
    progress.clear();
    if (!page.ok) return report.broken(page.error, token);
    report.add(page.value);
    const { nextPageToken } = page.value;
    if (nextPageToken === null) return report.done();
    token = nextPageToken;
    if (isStopped) return report.interrupted(token);
    progress.show(page.value, report.counts);
  }
}
