import { html } from "hono/html";
import { lintConfiguration } from "../../decide/lint/lint.ts";
import { stepsOf } from "../../inputs/origin.ts";
import { ok, type Result } from "../../model/result.ts";
import { historyProblem } from "../../routes/history-problem.ts";
import { touchedFindings } from "../../routes/lint-touched.ts";
import type { Problem } from "../../routes/problem.ts";
import { type Exchange, queryOf, type Reply } from "../../routes/route.ts";
import { type ConfigurationText, readConfigurationText } from "../configuration-text.ts";
import type { FormFault } from "../form-fault.ts";
import { type Html, page, prose } from "../page.ts";
import { postedForm } from "../posted-form.ts";
import type { GivenText } from "../what-if/documents.ts";
import { type AboutNode, aboutNode } from "./about-node.ts";
import { findingsList, numbered, type PlaceOf } from "./findings.ts";
import { type LintTexts, lintForm } from "./form.ts";
import { listing } from "./listing.ts";

/** A page that is only opened waits no longer for the counts; the button counts as far as POST /v1/lint does. */
const OPENING_BUDGET_MS = 30;

/** GET /lint: the form, and what is wrong with the configuration that the node of the link recorded. */
export async function getLintPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = queryOf(exchange, ["node", "change"]);
  if (!given.ok) return given;
  const { node: asked = "", change = "" } = given.value;
  const node = asked || (exchange.caller.node ?? "");
  if (node === "") return show(exchange, { texts: { node, change } });
  const about = await aboutNode(exchange, node);
  if (!about.ok) return withNodeFault(exchange, { node, change }, about.error);
  if (change !== "") return show(exchange, { texts: { node, change } });
  const { configuration, lacks } = about.value;
  if (configuration === null) {
    const why = lacks ?? `the newest snapshot of node \`${node}\` holds no configuration`;
    return show(exchange, {
      texts: { node, change },
      note: html`<p class="note warn">${prose(`${why}: paste it`)}</p>`,
    });
  }
  const text = JSON.stringify(configuration, null, 2);
  const note = html`<p class="note good">As node <a href="/nodes/${encodeURIComponent(node)}">${node}</a> recorded it: the fields that a decision reads. For all of them paste what <code>kubectl get --raw /api/v1/nodes/${node}/proxy/configz</code> prints.</p>`;
  const source = { name: "the configuration", text };
  return looked(exchange, {
    texts: { node, change: text },
    about: about.value,
    source,
    note,
    budgetMs: OPENING_BUDGET_MS,
  });
}

/** POST /lint: what is wrong with the configuration of the form, for the node if one is named. */
export async function postLintPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const form = await postedForm(exchange, ["change", "node"]);
  if (!form.ok) return form;
  const { texts: posted, file, fileFault } = form.value;
  const texts = { change: file?.text ?? posted.change, node: posted.node.trim() };
  if (fileFault !== null) return show(exchange, { texts, faults: [{ field: "file", text: fileFault }], status: 400 });
  const about = texts.node === "" ? ok(null) : await aboutNode(exchange, texts.node);
  if (!about.ok) return withNodeFault(exchange, texts, about.error);
  if (texts.change.trim() === "") {
    const text = "paste a configuration, or choose a file: there is nothing to look over";
    return show(exchange, { texts, faults: [{ field: "change", text }], status: 400 });
  }
  const source = file ?? { name: "the configuration", text: texts.change };
  const lacks = about.value?.lacks ?? null;
  const note =
    lacks === null ? "" : html`<p class="note warn">${prose(`${lacks}: only the configuration is looked over`)}</p>`;
  return looked(exchange, { texts, about: about.value, source, note });
}

/** At its field, with names that may have been meant, and nothing of what was typed is lost. */
function withNodeFault(
  exchange: Exchange,
  texts: LintTexts,
  problem: Problem,
): Promise<Result<Reply, Problem>> | Result<Reply, Problem> {
  if (problem.code !== "unknown_node") return { ok: false, error: problem };
  const faults = [{ field: "node", text: problem.detail }];
  return show(exchange, { texts, faults, near: problem.near ?? [], status: 404 });
}

interface Looked {
  readonly texts: LintTexts;
  readonly about: AboutNode | null;
  readonly source: GivenText;
  readonly note: Html | "";
  readonly budgetMs?: number;
}

async function looked(
  exchange: Exchange,
  { texts, about, source, note, budgetMs }: Looked,
): Promise<Result<Reply, Problem>> {
  const read = readConfigurationText(source);
  if (!read.ok) {
    const faults = read.error.map((text) => ({ field: "change", text }));
    return show(exchange, { texts, faults, note, status: 400 });
  }
  const { store } = exchange.ports;
  const node = texts.node || exchange.caller.node;
  const found = lintConfiguration(read.value.source.value, about?.snapshot);
  const touched = await touchedFindings(store, found, node === null ? {} : { node }, budgetMs);
  if (!touched.ok) return historyProblem(touched.error);
  const findings = numbered(touched.value);
  const placeOf = placesIn(read.value, source.text);
  const answer = html`${findingsList(findings, placeOf, texts.node)}${listing(source.text, findings, placeOf)}`;
  return show(exchange, { texts, note, answer });
}

/** Of a field of the configuration in the text: the line of its name. What is absent has no place. */
function placesIn({ source, base, value }: ConfigurationText, text: string): PlaceOf {
  const lines = text.split("\n");
  return (field) => {
    const steps = stepsOf(field);
    if (!source.hasPlaces || !isThere(value, steps)) return null;
    const { line } = source.place([...base, ...steps]);
    return nameAbove(lines, line, String(steps.at(-1)));
  };
}
/** A map stands below its name. */
function nameAbove(lines: readonly string[], line: number, name: string): number {
  const above = [line, line - 1, line - 2].find((at) => lines[at - 1]?.includes(name));
  return above ?? line;
}
function isThere(value: unknown, steps: readonly (string | number)[]): boolean {
  const [first] = steps;
  return first !== undefined && typeof value === "object" && value !== null && Object.hasOwn(value, first);
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
  const { ports, caller } = exchange;
  const rows = await ports.store.listNodes();
  if (!rows.ok) return historyProblem(rows.error);
  const nodes = rows.value.map(({ name }) => name).filter((name) => caller.node === null || name === caller.node);
  return page(
    "Lint",
    html`<p class="soft">What is wrong with a KubeletConfiguration before a kubelet reads it: what it would refuse to start with, what does not do what is written, and what fights.</p>
${note}
${lintForm({ texts, faults, nodes, near, limit: ports.limits.bodyBytes })}
${answer ?? html`<div id="findings"></div>`}`,
    { place: "/lint", assets: ["lint.js"], status },
  );
}
