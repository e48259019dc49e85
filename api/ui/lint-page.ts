import { isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import { LINT_SEVERITIES, type LintFinding, type LintSeverity } from "../decide/lint/finding.ts";
import { readFlags } from "../decide/lint/flags.ts";
import { flagOf, lintStart } from "../decide/lint/start.ts";
import type { Reply } from "../dependencies.ts";
import { nodeNamed } from "../http/nodes.ts";
import { type Exchange, queryOf } from "../http/route.ts";
import { decodeStored } from "../model/decode.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { chooseProfileFor, type ProfileNote } from "../profiles/index.ts";
import { configurationOfAnother, noteOfRecorded } from "../profiles/unknown-fields.ts";
import { type Touched, type TouchedFinding, touchedFindings } from "../service/lint-touched.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { many } from "../text/sentences/words.ts";
import { argsField, configurationField, lineIn, readArgsText, readConfigurationText } from "./configuration-text.ts";
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
import { type Html, page, prose } from "./page.ts";
import { whatIfLink } from "./what-if/change.ts";
import type { FormText } from "./what-if/posted-documents.ts";

interface LintTexts {
  readonly change: string;
  readonly node: string;
  /** The kubelet version; empty: the node's own, or the newest. */
  readonly kubelet: string;
  /** The kubelet's command line. */
  readonly args: string;
}
interface LintFormShown {
  readonly texts: LintTexts;
  readonly faults: readonly FormFault[];
  readonly nodes: readonly string[];
  /** Names that may have been meant. */
  readonly near: readonly string[];
  readonly limit: number;
}

const PLACEHOLDER =
  "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard:\n  memory.available: 100Mi";

const lintLink = (node: string): string => `/lint?node=${encodeURIComponent(node)}`;

/** The form for the configuration to check. */
const lintForm = ({ texts, faults, nodes, near, limit }: LintFormShown): Html => html`
<form id="lint" class="card ask" method="post" action="/lint#findings" enctype="multipart/form-data" aria-label="What to check">
${configurationField({ name: "change", label: "A KubeletConfiguration: YAML or JSON, or the kubelet’s /configz", text: texts.change, placeholder: PLACEHOLDER, faults, limit })}
${argsField(texts.args, faults)}
<div class="row"><div><label for="node">For the node (its sizes, machine, state files and recorded decisions)</label><input id="node" name="node" value="${texts.node}" maxlength="253" placeholder="of no node" list="nodes" autocomplete="off" size="34"${described(faults, "node")}>
${nodeChoices(nodes)}${faultsOf(faults, "node")}${nearLinks(near)}</div>
<div><label for="kubelet">Kubelet</label><select id="kubelet" name="kubelet">${kubeletOptions(texts.kubelet, "the node’s, or the newest")}</select></div></div>
<p class="actions"><button class="main">Check</button> <a href="/lint">reset</a></p>
</form>
${nodes.length === 0 || texts.node !== "" ? "" : recorded(nodes)}`;

const nearLinks = (near: readonly string[]): Html | "" =>
  near.length === 0
    ? ""
    : html`<p class="small">What is recorded of ${near.map((name, i) => html`${i === 0 ? "" : ", "}<a href="${lintLink(name)}">${name}</a>`)}</p>`;

const MAX_LINKED = 24;
/** Links for recorded configurations, which need not be pasted. */
function recorded(nodes: readonly string[]): Html {
  const more = nodes.length - MAX_LINKED;
  return html`<p class="small">Or check a node’s recorded configuration: ${nodes.slice(0, MAX_LINKED).map((name, i) => html`${i === 0 ? "" : ", "}<a href="${lintLink(name)}">${name}</a>`)}${more > 0 ? ` and ${more} more` : ""}.</p>`;
}

/** The maximum length of a link that can be shared. */
const LONGEST_LINK = 2000;

/** Links to try a patch: the filled-in replay form for the whole history, and what-if on the node's newest snapshot, answered at once. */
function fixLinks(fix: unknown, node: string): Html {
  const change = JSON.stringify(fix);
  const of = node === "" ? {} : { node };
  const query = new URLSearchParams({ ...of, as: "patch", change }).toString();
  const replay =
    query.length > LONGEST_LINK
      ? html`<span class="soft">Too long for a link: copy it into <a href="/replay">replay</a>.</span>`
      : html`<a href="/replay?${query}">Replay the history with it</a>`;
  const whatIf = node === "" ? null : whatIfLink({ node, as: "patch", change });
  return whatIf === null ? replay : html`<a href="${whatIf}">What if ${node} had it</a> ${replay}`;
}

/** All patches as one, if there are several. */
function allFixes(findings: readonly LintFinding[], node: string): Html | "" {
  const fixes = new Map<string, unknown>(
    findings.flatMap(({ fix }) => (fix === null ? [] : [[JSON.stringify(fix), fix]])),
  );
  if (fixes.size < 2) return "";
  const all = [...fixes.values()].reduce<unknown>(joined, {});
  return html`<h3 id="all">All patches together</h3>
<div class="card"><div class="fix"><pre tabindex="0" data-copy="all patches">${JSON.stringify(all, null, 2)}</pre></div><div class="try small">${fixLinks(all, node)}</div></div>`;
}

/** Combines two merge patches; a null stays, since it removes a field. */
function joined(first: unknown, second: unknown): unknown {
  if (!isObject(first) || !isObject(second)) return second;
  const more = Object.entries(second).map(([name, value]) => [
    name,
    Object.hasOwn(first, name) ? joined(first[name], value) : value,
  ]);
  return { ...first, ...Object.fromEntries(more) };
}

/** The line of a field in the given text, from 1; null: not known. */
type PlaceOf = (field: string) => number | null;
/** A finding with its number on the page. */
type Numbered = TouchedFinding & { readonly id: string };

const TONE: { readonly [S in LintSeverity]: "bad" | "warn" | "info" } = {
  "refuses-start": "bad",
  error: "bad",
  warning: "warn",
  note: "info",
};
const MEANS: { readonly [S in LintSeverity]: string } = {
  "refuses-start": "the kubelet does not start with it",
  error: "a setting has no effect",
  warning: "it works, but does harm",
  note: "good to know",
};

const numbered = (findings: readonly TouchedFinding[]): readonly Numbered[] =>
  findings.map((finding, i) => ({ ...finding, id: `finding-${i + 1}` }));

/** Lists the findings by severity, each with what to do. */
function findingsList(findings: readonly Numbered[], placeOf: PlaceOf, node: string, { version }: ProfileNote): Html {
  if (findings.length === 0)
    return html`<section id="findings" aria-label="Findings"><p class="note good"><strong>Nothing found.</strong> A kubelet ${version} would start with it.</p></section>`;
  const groups = LINT_SEVERITIES.map((severity) => {
    const some = findings.filter((finding) => finding.severity === severity);
    if (some.length === 0) return "";
    return html`<h3><span class="tag ${TONE[severity]}">${severity}</span> <span class="soft small">${some.length}: ${MEANS[severity]}</span></h3>
${some.map((finding) => findingCard(finding, placeOf, node))}`;
  });
  return html`<section id="findings" aria-labelledby="findings-title"><h2 id="findings-title">${countsText(findings)}</h2>
${touchedNote(findings)}${groups}
${allFixes(findings, node)}</section>`;
}

function countsText(findings: readonly TouchedFinding[]): string {
  const counts = LINT_SEVERITIES.map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? "" : severity === "refuses-start" ? `${count} ${severity}` : many(count, severity);
  });
  return counts.filter((count) => count !== "").join(", ");
}

function touchedNote(findings: readonly TouchedFinding[]): Html | "" {
  const tried = findings.find(({ touched }) => touched !== null)?.touched;
  if (tried === undefined || tried === null) return "";
  if (tried.of === 0) return html`<p class="soft small">No decision is recorded that a finding could have touched.</p>`;
  return html`<p class="soft small">Touched: recorded decisions whose own configuration has the finding too, and that the patch would have changed; for a finding without a patch, those whose answer names it or would have been different without the field. Among the newest ${tried.of.toLocaleString("en")}, as many as there was time for; checking it here includes more.</p>`;
}

function findingCard(finding: Numbered, placeOf: PlaceOf, node: string): Html {
  const { id, code, severity, field, message, kubelet, advice, fix, touched } = finding;
  const line = placeOf(field);
  return html`<article class="card finding ${TONE[severity]}" id="${id}" aria-labelledby="${id}-field">
<h4 id="${id}-field"><code>${field}</code> ${line === null ? "" : html`<a class="small" href="#line-${line}">line ${line}</a>`} <code class="soft small code">${code}</code></h4>
<p>${kubelet ? html`<span class="soft small">kubelet’s message</span> <q class="kubelet">${message}</q>` : message}</p>
<p class="advice"><span aria-hidden="true">→</span> ${prose(advice)}</p>
${fix === null ? "" : html`<div class="fix"><span class="soft small">patch</span> <pre tabindex="0" data-copy="the patch of ${field}">${JSON.stringify(fix, null, 2)}</pre></div>`}
<div class="try small">${touchedText(touched)}${fix === null ? "" : html` ${fixLinks(fix, node)}`}</div>
</article>`;
}

function touchedText(touched: Touched | null): Html | "" {
  if (touched === null) return html`<span class="soft">not counted: it is of no field</span>`;
  if (touched.of === 0) return "";
  const tone = touched.decisions > 0 ? "warn" : "";
  return html`<span class="tag ${tone}">touched ${touched.decisions.toLocaleString("en")} of ${touched.of.toLocaleString("en")}</span>`;
}

/** Lines that the page shows; of longer texts the findings alone. */
const MAX_LINES = 1000;
const MAX_CHARACTERS = 2000;

/** The checked text, line by line, with the findings of each line beside it. */
function listing(text: string, findings: readonly Numbered[], placeOf: PlaceOf): Html | "" {
  const lines = text.replace(/\n$/, "").split("\n");
  if (text.trim() === "" || lines.length > MAX_LINES) return "";
  const byLine = new Map<number, Numbered[]>();
  for (const finding of findings) {
    const line = placeOf(finding.field);
    if (line !== null) byLine.set(line, [...(byLine.get(line) ?? []), finding]);
  }
  return html`<section aria-labelledby="listing-title"><h2 id="listing-title">What was checked</h2>
<div class="scroll" tabindex="0" role="region" aria-label="The configuration, line by line"><table class="listing"><tbody>${lines.map((line, i) => row(line, i + 1, byLine.get(i + 1) ?? []))}</tbody></table></div></section>`;
}

function row(line: string, at: number, findings: readonly Numbered[]): Html {
  const worst = LINT_SEVERITIES.find((severity) => findings.some((finding) => finding.severity === severity));
  const marks = findings.map(
    ({ id, severity, code }) => html`<a class="tag ${TONE[severity]}" href="#${id}">${severity}: ${code}</a> `,
  );
  return html`<tr id="line-${at}"${worst === undefined ? "" : html` class="${TONE[worst]}"`}><td class="part num soft">${at}</td><td class="part"><code class="source">${line.slice(0, MAX_CHARACTERS)}</code></td><td class="part">${marks}</td></tr>`;
}

/** A page that is only opened waits no longer for the counts; the button counts as far as POST /v1/lint does. */
const OPENING_BUDGET_MS = 30;

/** GET /lint: the form, and the findings about the recorded configuration of the linked node. */
export async function getLintPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, ["node", "change", "kubelet"]);
  if (!given.ok) return given;
  const { node: asked = "", change = "", kubelet = "" } = given.value;
  const node = asked || (exchange.caller.node ?? "");
  const texts = { node, change, kubelet, args: "" };
  if (node === "") return show(exchange, { texts });
  const about = await aboutNode(exchange, node);
  if (!about.ok) return withNodeFault(exchange, texts, about.error);
  if (change !== "") return show(exchange, { texts });
  const { configuration, lacks } = about.value;
  if (configuration === null) {
    const why = lacks ?? `the newest snapshot of node \`${node}\` holds no configuration`;
    return show(exchange, {
      texts,
      note: html`<p class="note warn">${prose(`${why}: paste it`)}</p>`,
    });
  }
  const text = JSON.stringify(configuration, null, 2);
  const note = html`<p class="note good">As recorded by node <a href="/nodes/${encodeURIComponent(node)}">${node}</a>: the fields that a decision reads. For all of them paste what <code>kubectl get --raw /api/v1/nodes/${node}/proxy/configz</code> prints.</p>`;
  const source = { name: "the configuration", text };
  return looked(exchange, {
    texts: { ...texts, change: text },
    about: about.value,
    source,
    note,
    budgetMs: OPENING_BUDGET_MS,
  });
}

/** POST /lint: the findings about the form's configuration, for the node if one is named. */
export async function postLintPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const form = await postedForm(exchange, ["change", "node", "kubelet", "args"]);
  if (!form.ok) return form;
  const { texts: posted, file, fileFault } = form.value;
  const { args } = posted;
  const texts = { change: file?.text ?? posted.change, node: posted.node.trim(), kubelet: posted.kubelet.trim(), args };
  if (fileFault !== null) return show(exchange, { texts, faults: [{ field: "file", text: fileFault }], status: 400 });
  const about = texts.node === "" ? ok(null) : await aboutNode(exchange, texts.node);
  if (!about.ok) return withNodeFault(exchange, texts, about.error);
  if (texts.change.trim() === "" && args.trim() === "") {
    const text = "paste a configuration, or choose a file: there is nothing to check";
    return show(exchange, { texts, faults: [{ field: "change", text }], status: 400 });
  }
  const source = file ?? { name: "the configuration", text: texts.change };
  const lacks = about.value?.lacks ?? null;
  const note =
    lacks === null ? "" : html`<p class="note warn">${prose(`${lacks}: only the configuration is checked`)}</p>`;
  return looked(exchange, { texts, about: about.value, source, note });
}

/** A fault at the node's field, with similar names; the typed texts are kept. */
function withNodeFault(
  exchange: Exchange,
  texts: LintTexts,
  problem: Problem,
): Promise<Result<Reply, Problem>> | Result<Reply, Problem> {
  if (problem.code !== "unknown_node") return { ok: false, error: problem };
  const faults = [{ field: "node", text: problem.detail }];
  return show(exchange, { texts, faults, near: problem.near ?? [], status: 404 });
}

interface LintPageInput {
  readonly texts: LintTexts;
  readonly about: AboutNode | null;
  readonly source: FormText;
  readonly note: Html | "";
  readonly budgetMs?: number;
}

async function looked(
  exchange: Exchange,
  { texts, about, source, note, budgetMs }: LintPageInput,
): Promise<Result<Reply, Problem>> {
  const read = source.text.trim() === "" ? ok(null) : readConfigurationText(source);
  const args = readArgsText(texts.args);
  if (!read.ok || !args.ok) {
    const faults = [
      ...(read.ok ? [] : read.error.map((text) => ({ field: "change", text }))),
      ...(args.ok ? [] : [{ field: "args", text: args.error }]),
    ];
    return show(exchange, { texts, faults, note, status: 400 });
  }
  const { store } = exchange.deps;
  const node = texts.node || exchange.caller.node;
  const { profile, note: kubelet } = chooseProfileFor(about?.snapshot, texts.kubelet);
  const flags = args.value === null ? null : readFlags(args.value, profile);
  const configuration = read.value === null ? (about?.configuration ?? undefined) : read.value.source.value;
  // a configuration recorded by a node is read without the fields that its kubelet does not know
  const isRecorded = JSON.stringify(configuration) === JSON.stringify(about?.configuration);
  const leftOut = isRecorded ? noteOfRecorded(about?.snapshot, configuration) : undefined;
  const other = isRecorded ? undefined : configurationOfAnother(about?.snapshot, configuration);
  if (other !== undefined) {
    const faults = [{ field: "change", text: `${other.path}: ${other.message}` }];
    return show(exchange, { texts, faults, note, status: 400 });
  }
  const start = { configuration, dropIns: null, flags };
  const found = lintStart(start, about?.snapshot, profile);
  const touched = await touchedFindings(store, found, node === null ? {} : { node }, budgetMs, exchange.signal);
  if (!touched.ok) return historyProblem(touched.error);
  const findings = numbered(touched.value);
  const lineOf = read.value === null ? () => null : lineIn(read.value, source.text);
  const placeOf = (field: string) => (flags !== null && flagOf(field, flags) !== null ? null : lineOf(field));
  const answer = html`${findingsList(findings, placeOf, texts.node, kubelet)}${listing(source.text, findings, placeOf)}`;
  const notes = leftOut === undefined ? note : html`${note}<p class="note warn">${leftOut}.</p>`;
  return show(exchange, { texts, note: notes, answer });
}

interface Shown {
  readonly texts: LintTexts;
  readonly faults?: readonly FormFault[];
  readonly near?: readonly string[];
  readonly status?: number;
  readonly note?: Html | "";
  readonly answer?: Html;
}

async function show(exchange: Exchange, shown: Shown): Promise<Result<Reply, Problem>> {
  const { texts, faults = [], near = [], status = 200, note = "", answer } = shown;
  const nodes = await offeredNodes(exchange);
  if (!nodes.ok) return nodes;
  return page(
    "Lint",
    html`<p class="soft">What is wrong with a KubeletConfiguration, before a kubelet reads it: what keeps the kubelet from starting, what has no effect, and which settings conflict.</p>
${note}
${lintForm({ texts, faults, nodes: nodes.value, near, limit: exchange.deps.limits.bodyBytes })}
${answer ?? html`<div id="findings"></div>`}`,
    { place: "/lint", assets: ["lint.js"], status },
  );
}

/** What the history knows about the node for checking its configuration. */
export interface AboutNode {
  /** The snapshot without its configuration; undefined: none can be read. */
  readonly snapshot: Snapshot | undefined;
  /** The recorded configuration; null: the snapshot has none. */
  readonly configuration: unknown;
  /** The missing inputs, in words; null: none. */
  readonly lacks: string | null;
}

/** The node's newest snapshot. Errors: there is no such node, not the caller's, the history's. */
export async function aboutNode(exchange: Exchange, name: string): Promise<Result<AboutNode, Problem>> {
  const found = await nodeNamed(exchange, name);
  if (!found.ok) return found;
  const latest = await exchange.deps.store.latestSnapshot(name);
  const nothing = { snapshot: undefined, configuration: null };
  if (!latest.ok && latest.error.isRow === true)
    return ok({ ...nothing, lacks: `the newest snapshot of node \`${name}\` is damaged` });
  if (!latest.ok) return historyProblem(latest.error);
  if (latest.value === null) {
    const { lastSnapshotId } = found.value;
    const why = lastSnapshotId === null ? "no snapshot was posted yet" : "the newest snapshot is no longer stored";
    return ok({ ...nothing, lacks: `of node \`${name}\` ${why}` });
  }
  const { kubeletConfiguration = null, ...rest } = bodyOf(latest.value.body);
  const decoded = decodeStored(rest);
  if (!decoded.ok)
    return ok({ ...nothing, lacks: `the newest snapshot of node \`${name}\` cannot be read by this version` });
  return ok({ snapshot: decoded.value, configuration: kubeletConfiguration, lacks: null });
}

function bodyOf(text: string): { readonly kubeletConfiguration?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as { readonly kubeletConfiguration?: unknown };
  } catch {
    return {};
  }
}
