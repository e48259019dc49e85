import { html } from "hono/html";
import { ok, type Result } from "../../model/result.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import type { Problem } from "../../routes/problem.ts";
import { type Exchange, queryOf, type Reply } from "../../routes/route.ts";
import { type Html, page, prose } from "../page.ts";
import { type Before, beforeOf } from "./before.ts";
import { type ReadChange, readChange } from "./change.ts";
import { compared } from "./compared.ts";
import { type FormView, whatIfForm } from "./form.ts";
import { emptyGiven, type FormFault, type Given, readGiven } from "./given.ts";
import { linkedTexts, linkOf } from "./link.ts";
import { type StoredBase, storedBase } from "./stored.ts";

/**
 * GET /what-if: the form as the link fills it in, about a stored snapshot (`snapshot`, that of `decision`, or the newest of
 * `node`) or about none yet; with the answer where the link names a change too.
 */
export async function getWhatIf(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const linked = await linkedTexts(exchange);
  if (!linked.ok) return linked;
  const { texts, isAsked } = linked.value;
  const stored = await storedBase(exchange, texts);
  if (!stored.ok) return stored;
  return shown(exchange, { given: emptyGiven(texts), stored: stored.value, faults: [], isAsked, faultStatus: 400 });
}

/** POST /what-if: both plans beside each other, and the form as it was filled in. Nothing is stored. */
export async function postWhatIf(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const given = await readGiven(exchange);
  if (!given.ok) return given;
  const stored = await storedBase(exchange, given.value.texts);
  if (stored.ok) return shown(exchange, { given: given.value, stored: stored.value, faults: [], isAsked: true });
  const { code, detail } = stored.error;
  if (code !== "unknown_node" && code !== "unknown_snapshot") return stored;
  const field = code === "unknown_node" || given.value.texts.snapshot === "" ? "node" : "snapshot";
  return shown(exchange, { given: given.value, stored: null, faults: [{ field, text: detail }], isAsked: true });
}

interface Showing {
  readonly given: Given;
  readonly stored: StoredBase | null;
  readonly faults: readonly FormFault[];
  /** The form was sent, or the link says all of it. */
  readonly isAsked?: boolean;
  /** Of a page that tells faults: a link is wrong by itself. */
  readonly faultStatus?: 400 | 422;
}

async function shown(
  exchange: Exchange,
  { given, stored, faults: first, isAsked = false, faultStatus = 422 }: Showing,
): Promise<Result<Reply, Problem>> {
  const before = beforeOf(given, stored?.input ?? null, exchange.ports.now());
  const change = readChange(given);
  const faults = [...first, ...before.faults, ...change.faults];
  const result = isAsked && faults.length === 0 ? await compared(exchange, { stored, before, change }) : null;
  if (result !== null && !result.ok) return result;
  const all = [...faults, ...(result?.value.faults ?? [])];
  const nodes = await nodeNames(exchange);
  if (!nodes.ok) return nodes;
  const view: FormView = {
    given: textsAfter(given, stored, before, change),
    faults: all,
    warnings: change.warnings,
    known: before.known,
    configuration: before.configuration,
    files: before.given,
    lost: before.lost,
    nodes: nodes.value,
    limit: exchange.ports.limits.bodyBytes,
  };
  return page(
    "What if",
    html`<p class="soft">What would the kubelet’s decisions be if its configuration, or a pod, were otherwise.</p>
${whatIfForm(view)}
<section id="result" class="wi-result">${all.length > 0 ? faultsNote(all) : html`${result?.value.content ?? ""}${result === null ? "" : shareNote(view.given, stored)}`}</section>`,
    { place: "/what-if", assets: ["what-if.js"], status: all.length > 0 ? faultStatus : 200 },
  );
}

/** The texts for the form that comes back. */
function textsAfter(
  { texts }: Given,
  found: StoredBase | null,
  { kept, isWhole }: Before,
  change: ReadChange,
): Given["texts"] {
  const snapshot = found === null || found.id === texts.snapshot ? texts.snapshot : "";
  const stored = isWhole ? { node: "", snapshot: "" } : { snapshot };
  const written = change.text === texts.change ? {} : { change: change.text, ...NO_HANDY };
  return { ...texts, ...stored, ...written, kept };
}
const NO_HANDY = {
  kubeReserved: "",
  systemReserved: "",
  evictionHard: "",
  maxPods: "",
  cpuManagerPolicy: "",
  topologyManagerPolicy: "",
  imageGCHighThresholdPercent: "",
  imageGCLowThresholdPercent: "",
};

/** How others come to see the same. */
function shareNote(texts: Given["texts"], stored: StoredBase | null): Html | Promise<Html> {
  const link = linkOf(texts, stored?.id ?? null);
  return link === null
    ? html`<p class="soft small">There is no link to it: that would have to hold files, or a text that is too long for one.</p>`
    : html`<p class="small"><a href="${link}">Link to this question and its answer</a></p>`;
}

const faultsNote = (faults: readonly FormFault[]): Html | Promise<Html> =>
  html`<h2>Not compared</h2><p class="note bad">${faults.length === 1 ? "Something was" : `${faults.length} things were`} not as expected; it is told beside its field, and the rest of the form is as it was. The first: ${prose(faults[0]?.text ?? "")}</p>`;

async function nodeNames({ ports, caller }: Exchange): Promise<Result<readonly string[], Problem>> {
  if (caller.node !== null) return ok([caller.node]);
  const rows = await ports.store.listNodes();
  if (!rows.ok) return historyProblem(rows.error);
  return ok(rows.value.slice(0, MOST_NODES).map(({ name }) => name));
}
const MOST_NODES = 500;
