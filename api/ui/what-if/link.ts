import { requireNode } from "../../auth/authorize.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import { ok, type Result } from "../../model/result.ts";
import { isId } from "../../routes/decision-request.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import { type Problem, problem } from "../../routes/problem.ts";
import { type Exchange, queryOf, queryProblem } from "../../routes/route.ts";
import { emptyGiven, type Given, TEXT_FIELDS, type TextField } from "./given.ts";

/** Fields of the form that a link can hold: all but what was in files. */
const LINKED = TEXT_FIELDS.filter((name) => name !== "kept" && name !== "paste");
type Linked = Exclude<TextField, "kept" | "paste">;
type Texts = Given["texts"];

/** Characters of a link's texts that are taken, and of a link that is offered: longer ones nobody shares. */
export const MOST_LINKED = 8192;
const LONGEST_LINK = 2000;

/** Of what is to be otherwise. */
const CHANGES = LINKED.filter((name) => !["node", "snapshot", "machine", "cgroup", "as"].includes(name));

/** The address of the form with these texts, and with its answer where that can be; null: too long to be shared. */
export function whatIfLink(texts: Partial<Record<Linked, string>>): string | null {
  const filled = Object.entries(texts).filter(([, text]) => text !== "");
  const query = new URLSearchParams(Object.fromEntries(filled)).toString();
  if (query.length > LONGEST_LINK) return null;
  return query === "" ? "/what-if" : `/what-if?${query}#result`;
}

/** The link to what a form holds; null: it is too long, or holds what was in files. */
export function linkOf(texts: Texts, snapshot: string | null): string | null {
  if (texts.kept !== "" || texts.paste !== "") return null;
  const own = Object.fromEntries(LINKED.map((name) => [name, texts[name]])) as Record<Linked, string>;
  // the very snapshot, which stays the same when the node posts another
  const base = snapshot === null ? {} : { snapshot, node: "" };
  return whatIfLink({ ...own, as: texts.as === "whole" ? "whole" : "", ...base });
}

/** What a link says of the form. */
export interface LinkedTexts {
  readonly texts: Texts;
  /** It names a node or snapshot and a change, so it is answered at once. */
  readonly isAsked: boolean;
}

/** The texts of a link. Errors: parameters that there are not, too long ones, a decision that is not there or has no snapshot. */
export async function linkedTexts(exchange: Exchange): Promise<Result<LinkedTexts, Problem>> {
  const query = queryOf(exchange, [...LINKED, "decision"]);
  if (!query.ok) return query;
  const { decision, ...texts } = query.value;
  const issues = [...tooLong(texts), ...unlike(query.value)];
  if (issues.length > 0) return queryProblem(issues);
  const snapshot = decision === undefined ? ok(texts.snapshot ?? "") : await snapshotOf(exchange, decision);
  if (!snapshot.ok) return snapshot;
  const given = { ...texts, snapshot: snapshot.value };
  const hasBase = given.snapshot !== "" || (given.node ?? "") !== "";
  const changes = CHANGES.some((name) => (texts[name] ?? "").trim() !== "");
  return ok({ texts: emptyGiven(given).texts, isAsked: hasBase && changes });
}

function tooLong(texts: Partial<Record<Linked, string>>): readonly InputIssue[] {
  const [longest] = Object.entries(texts).sort(([, a], [, b]) => b.length - a.length);
  const length = Object.values(texts).reduce((sum, text) => sum + text.length, 0);
  if (longest === undefined || length <= MOST_LINKED) return [];
  const [path, text] = longest;
  const message = `has ${text.length} of the ${length} characters of the link, which may have ${MOST_LINKED}: use the form`;
  return [{ path, message }];
}

const WORDS = { as: ["patch", "whole"], cgroup: ["1", "2"] } as const;
function unlike(given: Partial<Record<Linked | "decision", string>>): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  for (const [name, words] of Object.entries(WORDS) as [keyof typeof WORDS, readonly string[]][]) {
    const text = given[name] ?? "";
    if (text !== "" && !words.includes(text))
      issues.push({ path: name, message: `must be one of ${words.join(", ")}` });
  }
  for (const name of ["node", "snapshot"] as const)
    if (given.decision !== undefined && (given[name] ?? "") !== "")
      issues.push({ path: name, message: "goes without `decision`, which names a snapshot" });
  return issues;
}

async function snapshotOf({ ports, caller }: Exchange, id: string): Promise<Result<string, Problem>> {
  const found = isId(id) ? await ports.store.getDecision(id) : ok(null);
  if (!found.ok) return historyProblem(found.error);
  if (found.value === null) return problem("unknown_decision", `there is no decision \`${id.slice(0, 64)}\``);
  const allowed = requireNode(caller, found.value.node);
  if (!allowed.ok) return allowed;
  const { snapshotId } = found.value;
  return snapshotId === null
    ? problem("unknown_snapshot", `with decision \`${id}\` no snapshot was stored`)
    : ok(snapshotId);
}
