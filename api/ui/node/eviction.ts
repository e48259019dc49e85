import { html } from "hono/html";
import { POLICY_VERSION } from "../../model/decision.ts";
import {
  EVICTION_SIGNALS,
  type EvictionDecision,
  type EvictionSignal,
  type FileSystems,
  type Reclaim,
} from "../../model/eviction.ts";
import { thresholdText } from "../../text/tables/thresholds.ts";
import type { Html } from "../page.ts";
import { recordPart } from "../record-part.ts";
import { moment } from "../time.ts";
import { verdictTag } from "../verdict-tag.ts";
import { spansOf } from "./acts.ts";
import { otherActs, plotsLegend } from "./acts-list.ts";
import type { EvictionHistory } from "./eviction-history.ts";
import type { Lists } from "./lists.ts";
import { podName } from "./managed.ts";
import { rankings } from "./rankings.ts";
import { notKnown, refusedText, scrolling, section } from "./section.ts";
import { type SignalHistory, signalPlot } from "./signal-plot.ts";
import type { NodeView } from "./view.ts";

/** Every signal over time with its thresholds and forecast, the conditions, who goes and who would go first. */
export function evictionSection(view: NodeView, lists: Lists): Html {
  const { eviction, pass, row } = view;
  const passes = `/nodes/${encodeURIComponent(row.name)}/decisions?kind=eviction`;
  const { newest } = eviction;
  if (newest !== null) {
    const { head, decision } = newest;
    const old = head.policyVersion === POLICY_VERSION ? "" : html` by the policy ${head.policyVersion}`;
    const from = html`${verdictTag(head.verdict)} decided ${moment(head.decidedAtMs)}${old}, <a href="/decisions/${head.id}">why</a> · <a href="${passes}">all passes</a>`;
    const drawnOf = (): Html => drawn(decision, { eviction, from, lists });
    return section("eviction", "Eviction", html`${recordPart(head, view.undrawn, drawnOf)}`);
  }
  if (pass === null) return section("eviction", "Eviction", notKnown(noPass(view), ["stats", "kubeletConfiguration"]));
  if (!pass.ok) return section("eviction", "Eviction", refusedText(pass.error));
  const { decision, verdict, needs } = pass.value;
  const from = html`${verdictTag(verdict)} as a first pass over the newest snapshot would end: ${eviction.decisions === 0 ? "none was recorded" : "what is recorded cannot be read by this version"}${
    needs.length === 0
      ? ""
      : html`, and it lacks ${needs.map((need, i) => html`${i === 0 ? "" : ", "}<code>${need}</code>`)}`
  }`;
  return section("eviction", "Eviction", drawn(decision, { eviction, from, lists }));
}

const noPass = ({ eviction }: NodeView): string =>
  eviction.decisions === 0
    ? "No eviction pass was recorded, and there is no snapshot to decide one on"
    : "What the recorded eviction passes hold cannot be read by this version";

const FILE_SYSTEMS: Readonly<Record<FileSystems, string>> = {
  one: "nodefs, imagefs and containerfs are one file system",
  dedicated: "images and containers are on a file system of their own",
  split: "images are on a file system of their own, containers on nodefs",
};

interface Around {
  readonly eviction: EvictionHistory;
  /** Which pass it is. */
  readonly from: Html;
  readonly lists: Lists;
}
function drawn(decision: EvictionDecision, { eviction: { points, acts }, from, lists }: Around): Html {
  if (lists.asked !== null) return html`<p>${from}.</p>${rankings(decision, lists)}`;
  const of = (signal: EvictionSignal): SignalHistory => {
    const own = points.get(signal) ?? [];
    const since = own[0]?.[0] ?? Number.NEGATIVE_INFINITY;
    const spans = spansOf(acts.filter(({ signals }) => signals.includes(signal)));
    return { points: own, acts: spans.filter(({ atMs }) => atMs >= since) };
  };
  const signals = EVICTION_SIGNALS.filter(
    (signal) => points.has(signal) || decision.thresholds.some((threshold) => threshold.signal === signal),
  );
  return html`<p>${from}. <span class="soft">${FILE_SYSTEMS[decision.fileSystems] ?? ""}</span></p>
${decision.warnings.map((line) => html`<p class="note warn">${line}</p>`)}
${decision.reclaim === null ? "" : reclaimText(decision.reclaim)}
${conditions(decision)}${evicted(decision)}
${
  signals.length === 0
    ? notKnown("No threshold is configured and no signal was observed", ["kubeletConfiguration.evictionHard", "stats"])
    : html`${plotsLegend(decision, acts)}<div class="plots">${signals.map((signal) => signalPlot(signal, decision, of(signal)))}</div>${otherActs(acts)}`
}
${rankings(decision, lists)}`;
}

const AFTER: Readonly<Record<Reclaim["afterNodeLevel"], string>> = {
  enough: "enough: no pod goes",
  "not-enough": "not enough",
  unknown: "whether that is enough is not known: a pod goes only if it is not",
  "nothing-run": "",
};
function reclaimText({ threshold, event, nodeLevel, afterNodeLevel }: Reclaim): Html {
  const before =
    nodeLevel.length === 0 ? "" : ` Before any pod goes: ${nodeLevel.join(", ")}; ${AFTER[afterNodeLevel]}.`;
  return html`<p class="note warn">For <code>${thresholdText(threshold)}</code>: ${event.reason}: ${event.message}.${before}</p>`;
}

function conditions({ conditions: list }: EvictionDecision): Html {
  if (list.length === 0) return html`<p>No pressure condition holds.</p>`;
  return html`<ul class="conditions">${list.map(
    ({ type, observed, lastObservedAtMs, untilMs }) =>
      html`<li><span class="tag warn">${type}</span> ${observed ? "observed now" : html`last observed at ${moment(lastObservedAtMs)}`}, true until ${moment(untilMs)} at least</li>`,
  )}</ul>`;
}

function evicted({ evicted: list, spared }: EvictionDecision): Html {
  const rows = list.map(
    ({ pod, cause, gracePeriodSeconds, message }) =>
      html`<tr><td><strong class="bad-text">${podName(pod)}</strong></td><td>${cause}</td><td class="num">${gracePeriodSeconds} s</td><td>${message}</td></tr>`,
  );
  const table =
    rows.length === 0
      ? ""
      : scrolling(
          "Pods that are evicted",
          html`<table><thead><tr><th>Evicted</th><th>Cause</th><th class="num">Grace period</th><th>Message</th></tr></thead><tbody>${rows}</tbody></table>`,
        );
  return html`${table}${spared.length === 0 ? "" : html`<p>Spared, being critical: ${spared.map(podName).join(", ")}</p>`}`;
}
