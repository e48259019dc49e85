import { html } from "hono/html";
import type { ReplayAnswer } from "../../replay/replay-answer.ts";
import { lostOf, passedOf } from "../../replay/tally.ts";
import { type Html, prose } from "../page.ts";
import { moment } from "../time.ts";
import { changedTable } from "./changed-table.ts";
import { type Counted, countedText } from "./counted.ts";
import { warningsNote } from "./form.ts";
import { linkAttribute, questionLink } from "./link.ts";
import { LONG_SECONDS } from "./pages.ts";
import type { ReplayTexts } from "./question.ts";
import { countTiles, kindsTable, nodesTable, number, verdictsTable } from "./tally-tables.ts";

export interface AnswerShown {
  readonly counted: Counted;
  /** Of the page that was replayed last. */
  readonly last: Pick<ReplayAnswer, "until" | "reachedAt" | "progress" | "nextPageToken">;
  /** As they were asked, with times that no longer depend on now. */
  readonly texts: ReplayTexts;
  readonly warnings: readonly string[];
  readonly origin: string;
}

/** What was counted so far, and the button that goes on. */
export function replayedAnswer(shown: AnswerShown): Html {
  const { counted, last, texts, warnings } = shown;
  const { counts } = counted.tally;
  const isDone = last.nextPageToken === null;
  const title = isDone ? "Replayed" : "Replayed so far";
  if (isDone && passedOf(counts) === 0)
    return html`<section id="answer"${linkAttribute(linkOf(texts))}><h2>${title}</h2>${warningsNote(warnings)}
<p class="note warn">No such decisions: nothing is recorded ${scopeText(texts)}. <a href="/">The nodes</a> say what there is.</p></section>`;
  return html`<section id="answer"${linkAttribute(linkOf(texts))} aria-labelledby="answer-title"><h2 id="answer-title">${title}</h2>
${warningsNote(warnings)}
${progressBar(shown)}
<p><strong>${headline(shown)}</strong> <span class="soft">Decisions ${scopeText(texts)}.</span></p>
${countTiles(counts)}
${isDone ? "" : goOn(shown)}
<div class="halves wide">${verdictsTable(counted.tally)}${kindsTable(counted.tally)}</div>
${nodesTable(counted.tally)}
${changedPart(counted)}
${unreadablePart(counted)}
${elsewhere(shown)}</section>`;
}

/** What would have been otherwise, of those alone that could be decided again. */
function headline({ counted, last }: AnswerShown): string {
  const { counts } = counted.tally;
  const { replayed, differs, refused } = counts;
  const others = differs + refused;
  const lost = lostOf(counts);
  const all = last.nextPageToken === null ? "" : " so far";
  if (replayed === 0) return `None of ${number(lost)} decisions could be decided again${all}.`;
  const rest = lost === 0 ? "" : ` ${number(lost)} could not be decided again.`;
  if (others > 0) return `${number(others)} of ${number(replayed)} decisions would have been others${all}.${rest}`;
  if (all === "" && lost === 0) return "Every decision would have been the same.";
  return `All ${number(replayed)}${lost === 0 ? "" : " that could be decided again"}${all} would have been the same.${rest}`;
}

/** `of node n1, of kind cpus, from … to …`. */
function scopeText({ node, kind, since, until }: ReplayTexts): Html {
  return html`${node === "" ? "of all nodes" : html`of node <code>${node}</code>`}${kind === "" ? "" : html`, of kind <code>${kind}</code>`}${since === "" ? "" : html`, from ${moment(Date.parse(since))}`}, to ${moment(Date.parse(until))}`;
}

function progressBar({ last: { progress, reachedAt } }: AnswerShown): Html {
  const percent = Math.floor(progress * 100);
  const reached = reachedAt === null ? "" : html`<span class="soft">up to ${moment(Date.parse(reachedAt))}</span>`;
  return html`<div class="going"><progress max="100" value="${percent}" aria-label="How much of the time is replayed">${percent} %</progress>
<span class="percent">${percent} %</span> ${reached}</div>`;
}

/** All that the next page needs: the server keeps nothing. */
function goOn({ counted, last, texts }: AnswerShown): Html {
  const fields = { ...texts, pageToken: last.nextPageToken ?? "", counted: countedText(counted) };
  return html`<form id="go-on" class="row" method="post" action="/replay#answer" enctype="multipart/form-data" aria-label="Go on">
${Object.entries(fields).map(([name, text]) => html`<input type="hidden" name="${name}" value="${text}">`)}
<button class="main" name="long" value="yes">Go on</button></form>
<noscript><p class="soft small">Each time for up to ${LONG_SECONDS} seconds.</p></noscript>`;
}

function changedPart({ changed, tally }: Counted): Html | "" {
  const { differs, refused } = tally.counts;
  if (changed.length === 0) return "";
  const more = differs + refused - changed.length;
  return html`<h3 id="changed">Decisions that would have been others</h3>
${changedTable(changed)}
${more > 0 ? html`<p class="soft">and ${number(more)} more: in a terminal <code>--all</code> lists them.</p>` : ""}`;
}

/** What was passed, and why. */
function unreadablePart({ unreadable, tally }: Counted): Html | "" {
  if (unreadable.length === 0) return "";
  const more = tally.counts.unreadable - unreadable.length;
  return html`<h3 id="unreadable">Decisions that cannot be read</h3>
<ul>${unreadable.map((one) => html`<li>${moment(Date.parse(one.decidedAt))} <a href="/nodes/${encodeURIComponent(one.node)}">${one.node}</a> ${one.kind} <a href="/decisions/${one.id}"><code>${one.id}</code></a>: ${prose(one.unreadable)}</li>`)}</ul>
${more > 0 ? html`<p class="soft">and ${number(more)} more: in a terminal <code>--all</code> lists them.</p>` : ""}`;
}

/** The same in a terminal, and as a link. */
function elsewhere({ texts, last, origin }: AnswerShown): Html {
  const option = (name: string, text: string): string => (text === "" ? "" : ` --${name} ${quoted(text)}`);
  const file = texts.change.trim() === "" ? "" : option(texts.as === "whole" ? "config" : "patch", "kubelet.yaml");
  const scope = `${option("since", texts.since)}${option("until", texts.until)}${option("node", texts.node)}${option("kind", texts.kind)}`;
  const command = `nodewise replay --api ${origin}${scope}${file}${option("page-token", last.nextPageToken ?? "")}`;
  const link = linkOf(texts);
  return html`<details class="elsewhere" id="elsewhere"><summary>In a terminal${link === null ? "" : ", or as a link"}</summary>
<p class="soft small">${file === "" ? "" : html`With what was pasted in <code>kubelet.yaml</code>. `}${last.nextPageToken === null ? "" : "It goes on where this page is."}</p>
<div class="fix"><pre tabindex="0" data-copy="the command">${command}</pre></div>
${link === null ? "" : html`<p><a href="${link}">A link to this question</a></p>`}</details>`;
}
/** Of the history, whichever decision the form was opened with. */
const linkOf = ({ decision: _, ...texts }: ReplayTexts): string | null => questionLink(texts);
const quoted = (text: string): string => (/^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
