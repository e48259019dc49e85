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
import { type StoredBase, storedBase } from "./stored.ts";

/** GET /what-if: the form, about a stored snapshot (`snapshot`, or the newest of `node`) or about none yet. */
export async function getWhatIf(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, ["snapshot", "node"]);
  if (!query.ok) return query;
  const given = emptyGiven({ snapshot: query.value.snapshot ?? "", node: query.value.node ?? "" });
  const stored = await storedBase(exchange, given.texts);
  if (!stored.ok) return stored;
  return shown(exchange, { given, stored: stored.value, faults: [] });
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
  /** The form was sent. */
  readonly isAsked?: boolean;
}

async function shown(
  exchange: Exchange,
  { given, stored, faults: first, isAsked = false }: Showing,
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
<section id="result" class="wi-result">${all.length > 0 ? faultsNote(all) : (result?.value.content ?? "")}</section>`,
    { place: "/what-if", assets: ["what-if.js"], status: all.length > 0 ? 422 : 200 },
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

const faultsNote = (faults: readonly FormFault[]): Html | Promise<Html> =>
  html`<h2>Not compared</h2><p class="note bad">${faults.length === 1 ? "Something was" : `${faults.length} things were`} not as expected; it is told beside its field, and the rest of the form is as it was. The first: ${prose(faults[0]?.text ?? "")}</p>`;

async function nodeNames({ ports, caller }: Exchange): Promise<Result<readonly string[], Problem>> {
  if (caller.node !== null) return ok([caller.node]);
  const rows = await ports.store.listNodes();
  if (!rows.ok) return historyProblem(rows.error);
  return ok(rows.value.slice(0, MOST_NODES).map(({ name }) => name));
}
const MOST_NODES = 500;
