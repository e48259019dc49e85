import { ok, type Result } from "../../base/result.ts";
import { type Decided, type DecisionOf, type Explain, isKind, type Kind, type Verdict } from "../../model/decision.ts";
import { decodeStored } from "../../model/decode.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { ProfileNote } from "../../profiles/index.ts";
import { printable } from "../../text/style.ts";
import { answeredAsText, answerText } from "../../text/tables/index.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { type Listed, tokenOf } from "../inputs/history-source.ts";
import { EXIT, type Fault, type Form, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";

export interface ShowFlags extends HistorySourceFlags {
  readonly explain: Explain;
  readonly output: Form;
}
/** The decision, as `GET /v1/decisions/{id}` returns it. */
interface Shown extends Listed, Omit<Decided<DecisionOf[Kind]>, "verdict"> {
  readonly profile: ProfileNote;
  readonly results: readonly {
    readonly reportedAt: string;
    readonly okCount: number;
    readonly failedCount: number;
    readonly dryRun: boolean;
  }[];
}
interface RecordWithSnapshot {
  readonly record: Shown;
  /** The snapshot as posted; null if it is no longer stored. */
  readonly snapshot: unknown;
}

/** `nodewise history show ID`: from a data directory or a running API. Errors: the decision is not stored, or no longer. */
export async function showDecision(id: string, given: ShowFlags, cli: Cli): Promise<Outcome> {
  const print = (found: Result<RecordWithSnapshot, Fault>): Outcome => {
    if (!found.ok) return found;
    if (given.output !== "table") printData(cli.terminal, found.value.record, given.output);
    else printText(cli.terminal, shownText(found.value, given.explain, cli));
    return ok(EXIT.ok);
  };
  if (given.api !== undefined) return print(await ofApi(id, given.api, given, cli));
  const { withHistory } = await import("../inputs/open-history.ts");
  return withHistory(storeSetting(given, cli), false, async (store) => {
    const { decisionNamed, notFoundText } = await import("../../service/decision-named.ts");
    const { recordText } = await import("../../http/decisions.ts");
    const { postedSnapshot } = await import("../../service/replay/parsed.ts");
    const found = await decisionNamed(store, id);
    if (!found.ok) return fault(EXIT.failed, found.error.message);
    const { row } = found.value;
    if (row === null) {
      const { ids } = found.value;
      const listed = ids.length === 0 ? ": old ones are removed; `nodewise history` lists what is there" : "";
      return fault(EXIT.badInput, `${notFoundText(id, ids)}${listed}`);
    }
    const text = await recordText(store, row);
    if (!text.ok) return fault(EXIT.failed, text.error.message);
    const record = JSON.parse(text.value) as Shown;
    const snapshot = record.snapshotId === null ? ok(null) : await store.getSnapshot(record.snapshotId);
    if (!snapshot.ok) return fault(EXIT.failed, snapshot.error.message);
    const posted = snapshot.value === null ? ok(null) : postedSnapshot(snapshot.value);
    return posted.ok ? print(ok({ record, snapshot: posted.value })) : fault(EXIT.failed, posted.error.message);
  });
}

async function ofApi(id: string, url: string, given: ShowFlags, cli: Cli): Promise<Result<RecordWithSnapshot, Fault>> {
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  const { apiOf } = await import("../inputs/history-api.ts");
  const get = apiOf(url, token.value);
  if (!get.ok) return get;
  const record = await get.value<Shown>(`v1/decisions/${encodeURIComponent(id)}`, {});
  if (!record.ok) return record;
  const { snapshotId } = record.value;
  const stored = snapshotId === null ? null : await get.value<{ snapshot: unknown }>(`v1/snapshots/${snapshotId}`, {});
  // only pictures of the machine need the snapshot
  return ok({ record: record.value, snapshot: stored?.ok === true ? stored.value.snapshot : null });
}

/** As a table; as stored if this version has no table for it. */
function drawnOrStored(
  { kind, node, verdict, decision }: Shown,
  draw: (kind: Kind) => string,
  terminal: Terminal,
): string {
  let why = "is of a kind that this version does not know";
  try {
    if (isKind(kind)) return draw(kind);
  } catch (error) {
    // the user gets the same details as a log
    why = `does not have the form that this version writes (${error instanceof Error ? error.message : error})`;
  }
  const title = [node, kind, verdict].map(printable).join(" · ");
  const note = terminal.paint("yellow", `what is recorded ${printable(why)}; as it is stored:`);
  const lines = JSON.stringify(decision, null, 2).split("\n").map(printable);
  return `${title}\n${note}\n${lines.join("\n")}\n`;
}

/** The decision's times; an older API has no `times`. */
const whenText = ({ decidedAt, times = 1, lastDecidedAt }: RecordWithSnapshot["record"]): string =>
  times === 1 ? decidedAt : `${times} times the same from ${decidedAt} to ${lastDecidedAt}`;

function shownText({ record, snapshot }: RecordWithSnapshot, explain: Explain, { terminal }: Cli): string {
  const { node, verdict, pod, decision, reasons, needs, results, policyVersion, profile, id } = record;
  const decoded = snapshot === null ? null : decodeStored(snapshot);
  const known = decoded?.ok === true ? decoded.value : undefined;
  const draw = (ofKind: Kind): string =>
    answerText(
      {
        kind: ofKind,
        node,
        policyVersion,
        decided: { decision, reasons, needs, verdict: verdict as Verdict },
        explain,
        machine: known?.machine,
        ...(pod === null ? {} : { asked: pod }),
        observedAtMs: known === undefined ? undefined : passTimeOf(known)?.atMs,
      },
      terminal,
    );
  const text = drawnOrStored(record, draw, terminal);
  const reports = results.map(
    ({ reportedAt, okCount, failedCount, dryRun }) =>
      `reported ${reportedAt}: ${okCount} ${dryRun ? "to be done" : "done"}, ${failedCount} failed\n`,
  );
  const answeredAs = answeredAsText(profile);
  const stamp = terminal.paint(
    "dim",
    `decided ${whenText(record)} as ${printable(policyVersion)}, id ${printable(id)}\n`,
  );
  return `${text}${reports.join("")}${answeredAs === null ? "" : terminal.paint("yellow", `${printable(answeredAs)}\n`)}${stamp}`;
}
