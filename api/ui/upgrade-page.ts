import { ok, type Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { type Exchange, queryOf } from "../http/route.ts";
import { type ChosenProfile, knownVersion, namedVersion } from "../profiles/index.ts";
import { configurationOfAnother } from "../profiles/unknown-fields.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { MAX_REPLAYED } from "../service/replay/replay-page.ts";
import { configured, versionBefore } from "../service/upgrade/asked.ts";
import { HistoryCounter, type HistorySum, historyLine, historySections } from "../service/upgrade/history-sections.ts";
import type { UpgradeReport } from "../service/upgrade/report.ts";
import {
  caveats,
  headline,
  type Section,
  type SectionNote,
  type SectionRow,
  sectionsOf,
} from "../service/upgrade/sections.ts";
import { upgradePages } from "../service/upgrade/upgrade-page.ts";
import { placed, type UpgradeInput, upgradeReport } from "../service/upgrade/upgrade-report.ts";
import { many } from "../text/sentences/words.ts";
import type { Color } from "../text/style.ts";
import {
  argsField,
  configurationField,
  type DropInsText,
  dropInsField,
  lineIn,
  readArgsText,
  readConfigurationText,
  readDropInsText,
} from "./configuration-text.ts";
import {
  described,
  type FormFault,
  faultsOf,
  kubeletOptions,
  nodeChoices,
  offeredNodes,
  postedForm,
} from "./form-fields.ts";
import { html } from "./html.ts";
import { type AboutNode, aboutNode } from "./lint-page.ts";
import { type Html, page, prose } from "./page.ts";

interface UpgradeTexts {
  readonly to: string;
  /** Empty: that of the node. */
  readonly from: string;
  readonly node: string;
  readonly change: string;
  /** The files of its `--config-dir`. */
  readonly dropIns: string;
  /** The kubelet's command line. */
  readonly args: string;
}
const NAMES = ["to", "from", "node", "change", "dropIns", "args"] as const;

const PLACEHOLDER = "empty: as the node recorded it\n\nkubeReserved:\n  cpu: 500m\nfeatureGates:\n  MemoryQoS: true";

interface FormShown {
  readonly texts: UpgradeTexts;
  readonly faults: readonly FormFault[];
  readonly nodes: readonly string[];
  readonly limit: number;
}
const upgradeForm = ({ texts, faults, nodes, limit }: FormShown): Html => html`
<form id="upgrade" class="card ask" method="post" action="/upgrade#answer" enctype="multipart/form-data" aria-label="Which kubelet, and whose">
<div class="row"><div><label for="to">To the kubelet</label><select id="to" name="to" required${described(faults, "to")}>${kubeletOptions(texts.to, "choose one")}</select>${faultsOf(faults, "to")}</div>
<div><label for="from">From</label><select id="from" name="from"${described(faults, "from")}>${kubeletOptions(texts.from, "the node’s")}</select>${faultsOf(faults, "from")}</div>
<div><label for="node">Of the node (its newest snapshot, and its decisions of seven days)</label><input id="node" name="node" value="${texts.node}" maxlength="253" placeholder="of no node" list="nodes" autocomplete="off" size="34"${described(faults, "node")}>
${nodeChoices(nodes)}${faultsOf(faults, "node")}</div></div>
${configurationField({ name: "change", label: "A KubeletConfiguration in the place of the node’s: YAML or JSON, or the kubelet’s /configz", text: texts.change, placeholder: PLACEHOLDER, faults, limit })}
${dropInsField(texts.dropIns, faults)}
${argsField(texts.args, faults)}
<p class="actions"><button class="main">What would change</button> <a href="/upgrade">reset</a></p>
</form>`;

/** GET /upgrade: the form, answered at once if the link names a version and a node. */
export async function getUpgradePage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, ["to", "from", "node"]);
  if (!given.ok) return given;
  const { to = "", from = "", node = "" } = given.value;
  const texts = { to, from, node: node || (exchange.caller.node ?? ""), change: "", dropIns: "", args: "" };
  if (to === "") return show(exchange, { texts });
  if (texts.node !== "") return answered(exchange, texts, { fileName: null, budgetMs: 0 });
  const versions = versionsIn(texts);
  return show(exchange, versions.ok ? { texts } : { texts, faults: [versions.error], status: 400 });
}

/** POST /upgrade: what the kubelet of the form does to the node, or to the configuration, of the form. */
export async function postUpgradePage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const form = await postedForm(exchange, NAMES);
  if (!form.ok) return form;
  const { texts: posted, file, fileFault } = form.value;
  const { to, from, node, change, dropIns, args } = posted;
  const texts = { to: to.trim(), from: from.trim(), node: node.trim(), change: file?.text ?? change, dropIns, args };
  if (fileFault !== null) return show(exchange, { texts, faults: [{ field: "file", text: fileFault }], status: 400 });
  return answered(exchange, texts, { fileName: file?.name ?? null, budgetMs: HISTORY_MS });
}

interface Versions {
  readonly to: ChosenProfile;
  readonly from: ChosenProfile | null;
}
function versionsIn({ to, from }: UpgradeTexts): Result<Versions, FormFault> {
  const after = knownVersion("to", to);
  const before = from === "" ? ok(null) : namedVersion("from", from);
  if (after.ok && before.ok) return ok({ to: after.value, from: before.value });
  const { path = "to", message = "" } = after.ok ? (before.ok ? {} : before.error) : after.error;
  return { ok: false, error: { field: path, text: message } };
}

async function answered(
  exchange: Exchange,
  texts: UpgradeTexts,
  { fileName, budgetMs }: { readonly fileName: string | null; readonly budgetMs: number },
): Promise<Result<Reply, Problem>> {
  const refuse = (field: string, text: string, status = 400) =>
    show(exchange, { texts, faults: [{ field, text }], status });
  const versions = versionsIn(texts);
  if (!versions.ok) return refuse(versions.error.field, versions.error.text);
  const about = texts.node === "" ? ok(null) : await aboutNode(exchange, texts.node);
  if (!about.ok) {
    return about.error.code === "unknown_node"
      ? refuse("node", about.error.detail, 404)
      : { ok: false, error: about.error };
  }
  const args = readArgsText(texts.args);
  if (!args.ok) return refuse("args", args.error);
  const dropIns = readDropInsText(texts.dropIns);
  if (!dropIns.ok) return refuse("dropIns", dropIns.error);
  const asked = subjectIn({ texts, fileName, about: about.value, args: args.value, dropIns: dropIns.value });
  if (!asked.ok) return refuse("change", asked.error);
  const { subject, placeOf } = asked.value;
  const other = configurationOfAnother(subject.snapshot, subject.configuration);
  if (other !== undefined) return refuse("change", `${other.path}: ${other.message}`);
  const before = versionBefore(versions.value.from, subject.snapshot);
  if (!before.ok) return refuse("from", before.error.message);
  const { to } = versions.value;
  const made = upgradeReport({ ...subject, to, from: before.value });
  const report = { ...placed(made, placeOf), node: texts.node || null };
  const history = texts.node === "" ? ok("") : await historyOf(exchange, texts.node, to, budgetMs);
  if (!history.ok) return history;
  return show(exchange, { texts, answer: html`${reportParts(report)}${history.value}` });
}

interface FormRead extends Pick<UpgradeInput, "args"> {
  readonly texts: UpgradeTexts;
  readonly fileName: string | null;
  readonly about: AboutNode | null;
  readonly dropIns: DropInsText | null;
}
interface UpgradeForm {
  readonly subject: Omit<UpgradeInput, "from" | "to">;
  /** The place of a field in the form's texts; null: it is not there. */
  readonly placeOf: (field: string) => string | null;
}

/** What the form is about. Errors: neither a configuration nor a command line nor a snapshot, only drop-ins, or something else. */
function subjectIn({ texts, fileName, about, args, dropIns }: FormRead): Result<UpgradeForm, string> {
  const isGiven = texts.change.trim() !== "";
  const fails = (error: string) => ({ ok: false, error }) as const;
  if (!isGiven && dropIns !== null) return fails("paste the configuration over which the drop-ins are merged");
  if (!isGiven && about === null && args === null) return fails("paste a configuration, or name a node");
  const lacks = about?.lacks ?? null;
  if (!isGiven && lacks !== null) return fails(`${lacks}: paste a configuration`);
  const snapshot = about?.snapshot;
  if (!isGiven) {
    const own = configured(undefined, about?.configuration ?? undefined);
    return ok({ subject: { ...own, args, dropIns: null, snapshot }, placeOf: () => null });
  }
  const read = readConfigurationText({ name: fileName ?? "the configuration", text: texts.change });
  if (!read.ok) return fails(read.error.join("; "));
  const own = configured(read.value.source.value, undefined);
  const lineOf = lineIn(read.value, texts.change);
  const placeOf = (field: string): string | null => {
    const line = lineOf(field);
    return dropIns?.placeOf(field) ?? (line === null ? null : `line ${line}`);
  };
  return ok({ subject: { ...own, args, dropIns: dropIns?.dropIns ?? null, snapshot }, placeOf });
}

const SEVEN_DAYS_MS = 7 * 24 * 60 * 60 * 1000;

/** How long one press of the button goes through a node's recorded decisions; a link shows the first page of them. */
const HISTORY_MS = 10_000;

/** No further page is begun after `budgetMs`. */
async function historyOf(
  { deps, signal }: Exchange,
  node: string,
  to: ChosenProfile,
  budgetMs: number,
): Promise<Result<Html, Problem>> {
  const nowMs = deps.now();
  const filter = { node, sinceMs: nowMs - SEVEN_DAYS_MS };
  const world = { nowMs, sha256: deps.sha256, signal };
  const pages = upgradePages(deps.store, to.profile);
  const counter = new HistoryCounter();
  const endMs = performance.now() + budgetMs;
  let pageToken: string | null = null;
  do {
    const request = { filter, limit: MAX_REPLAYED, ...(pageToken === null ? {} : { pageToken }) };
    const found = await pages(world, request);
    if (!found.ok) return historyProblem(found.error);
    counter.add(found.value);
    pageToken = found.value.nextPageToken;
  } while (pageToken !== null && performance.now() < endMs && !signal.aborted);
  return ok(historyParts(counter.sum(), to.note.version, pageToken === null));
}

interface Shown {
  readonly texts: UpgradeTexts;
  readonly faults?: readonly FormFault[];
  readonly status?: number;
  readonly answer?: Html;
}

async function show(
  exchange: Exchange,
  { texts, faults = [], status = 200, answer }: Shown,
): Promise<Result<Reply, Problem>> {
  const nodes = await offeredNodes(exchange);
  if (!nodes.ok) return nodes;
  return page(
    "Upgrade",
    html`<p class="soft">What another version of the kubelet changes on a node: what would not start, which feature gates change, which decisions change, and what to do before. A downgrade works too.</p>
${upgradeForm({ texts, faults, nodes: nodes.value, limit: exchange.deps.limits.bodyBytes })}
<div id="answer">${answer ?? ""}</div>`,
    { place: "/upgrade", assets: ["upgrade.js"], status },
  );
}

const TONE: Partial<Record<Color, "bad" | "warn" | "info">> = { red: "bad", yellow: "warn", cyan: "info" };
const OUTCOME: { readonly [O in UpgradeReport["outcome"]]: "bad" | "warn" | "good" } = {
  "refuses-start": "bad",
  changes: "warn",
  same: "good",
};

/** Shows what another kubelet version changes on a node: the result, the number of changes of each sort, and all changes. */
function reportParts(report: UpgradeReport): Html {
  const { outcome, starts, gates, staticPods, decisions, steps } = report;
  const figures: readonly (readonly [count: number, words: string, id: string, tone: string])[] = [
    [
      starts.filter(({ severity }) => severity === "refuses-start").length,
      "keep it from starting",
      "starts",
      "bad-text",
    ],
    [gates.filter(({ changes }) => changes === "value").length, "gates change", "gates", "warn-text"],
    [staticPods.length, "static pods restart", "static-pods", "warn-text"],
    [
      (decisions?.kinds ?? []).reduce((sum, { changed }) => sum + changed, 0),
      "decisions change",
      "changed",
      "warn-text",
    ],
    [steps.length, "steps before", "steps", ""],
  ];
  const tile = ([count, words, id, tone]: (typeof figures)[number]): Html => {
    const inside = html`<span class="figure ${count > 0 ? tone : ""}">${count.toLocaleString("en")}</span><span class="soft">${words}</span>`;
    return count === 0
      ? html`<div class="card tile">${inside}</div>`
      : html`<a class="card tile" href="#${id}">${inside}</a>`;
  };
  return html`<p class="note ${OUTCOME[outcome]}" id="outcome"><strong>${headline(report)}.</strong></p>
<div class="cards counts">${figures.map(tile)}</div>
${caveats(report).map((line) => html`<p class="soft small">${line}.</p>`)}
<h2>What would change</h2>
${sectionsOf(report).map(sectionPart)}`;
}

/** The outcome for recorded decisions. `isWhole`: these are all. */
function historyParts(sum: HistorySum, to: string, isWhole: boolean): Html {
  const { counts } = sum;
  const passed = counts.replayed + counts.gone + counts.unreadable;
  const some = isWhole ? "" : `: the oldest ${many(passed, "decision")} of the time; nodewise upgrade goes through all`;
  return html`<section aria-labelledby="history-title"><h2 id="history-title">Recorded decisions</h2>
<p>${historyLine(sum, to)}${some}. <span class="soft">Each has its own recorded configuration.</span></p>
${historySections(sum).map(sectionPart)}</section>`;
}

const FINDINGS: ReadonlySet<string> = new Set(["starts", "starts-now"]);

/** A part under its title. */
function sectionPart(section: Section): Html {
  const { id, title, columns, rows, more } = section;
  const body = columns.length === 0 ? stepList(rows) : FINDINGS.has(id) ? rows.map(finding) : tablePart(section);
  return html`<section><h3 id="${id}">${title}</h3>
${rows.length === 0 ? "" : body}${more === undefined ? "" : html`<p class="soft small">${more}.</p>`}</section>`;
}

const stepList = (rows: readonly SectionRow[]): Html =>
  html`<ol class="steps">${rows.map(({ cells, notes }) => html`<li>${prose(cells.join(" "))}${notes.map((one) => noteLine(one, cells[0] ?? ""))}</li>`)}</ol>`;

/** A finding, in the form of the lint page. */
function finding({ cells: [severity = "", field = "", where = "", ...others], tone, notes }: SectionRow): Html {
  const word = toneOf(tone);
  const code = others.at(-1) ?? "";
  const details = [where, ...others.slice(0, -1)].filter((text) => text !== "").join(", ");
  return html`<article class="card finding ${word}"><h4><span class="tag ${word}">${severity}</span> <code>${field}</code> <span class="soft small">${details}</span> <code class="soft small code">${code}</code></h4>
${notes.map((one) => noteLine(one, field))}</article>`;
}
const toneOf = (tone: Color | undefined): string => (tone === undefined ? "" : (TONE[tone] ?? ""));

function noteLine({ as, text }: SectionNote, of: string): Html {
  if (as === "kubelet")
    return html`<p><span class="soft small">kubelet’s message</span> <q class="kubelet">${text}</q></p>`;
  if (as === "patch")
    return html`<div class="fix"><span class="soft small">patch</span> <pre tabindex="0" data-copy="the patch of ${of}">${indented(text)}</pre></div>`;
  return as === "do"
    ? html`<p class="advice"><span aria-hidden="true">→</span> ${prose(text)}</p>`
    : html`<p>${prose(text)}</p>`;
}
const indented = (json: string): string => JSON.stringify(JSON.parse(json), null, 2);

function tablePart({ title, columns, rows }: Section): Html {
  const heads = columns.map(
    ({ title: head, align }) => html`<th${align === "right" ? html` class="num"` : ""}>${wordOf(head)}</th>`,
  );
  const row = ({ cells, tone, notes }: SectionRow): Html => {
    const word = toneOf(tone);
    const parts = cells.map(
      (cell, i) =>
        html`<td class="${columns[i]?.align === "right" ? "num " : ""}${i === 0 && word !== "" ? `${word}-text` : ""}">${cell}</td>`,
    );
    const below =
      notes.length === 0
        ? ""
        : html`<tr class="what"><td colspan="${columns.length}">${notes.map((one) => noteLine(one, cells[0] ?? ""))}</td></tr>`;
    return html`<tr${below === "" ? html` class="what"` : ""}>${parts}</tr>${below}`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="changes"><thead><tr>${heads}</tr></thead><tbody>${rows.map(row)}</tbody></table></div>`;
}
const wordOf = (head: string): string => `${head.slice(0, 1)}${head.slice(1).toLowerCase()}`;
