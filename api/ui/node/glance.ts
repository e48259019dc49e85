import type { EvictionDecision, RankedPod } from "../../model/eviction.ts";
import type { PodRef } from "../../model/forms.ts";
import { type FleetNode, fleetNode, knowsRefusals, nextThreshold } from "../../service/fleet.ts";
import { many } from "../../text/sentences/words.ts";
import { amountText } from "../../text/size.ts";
import { durationText } from "../../text/time-text.ts";
import { headroomText, limitText, REFUSALS_NOT_KNOWN, severityTag } from "../fleet/fleet.ts";
import { html, moment, podLink } from "../html.ts";
import type { Html } from "../page.ts";
import { tryDrawing } from "../record-part.ts";
import { whatIfLink } from "../what-if/change.ts";
import { endsIn } from "./pods.ts";
import { isOpen, type NodeView, passOf, podName } from "./view.ts";

/** The most urgent facts: pressure, the next eviction, refusals, and values that differ from the decision. */
export async function glance(view: NodeView, nowMs: number): Promise<Html> {
  const { fleet, row, eviction, undrawn } = view;
  const next = (): Html => nextTile(row.name, passOf(view));
  const first = eviction.newest === null ? next() : await tryDrawing(eviction.newest.head, undrawn, next);
  const whatIf = whatIfLink({ node: row.name });
  return html`<div class="cards glance">
${fleet === null ? "" : pressureTile(fleetNode(fleet, nowMs), nowMs)}
${first ?? ""}
${refusedTile(view)}
${driftTile(view)}
</div>
${whatIf === null ? "" : html`<p><a href="${whatIf}">Try a change on this node</a></p>`}`;
}

const tile = (name: string, figure: Html | string, words: Html | string, href: string, tone = ""): Html =>
  html`<a class="card tile" href="${href}"><span class="soft small">${name}</span><span class="figure ${tone}">${figure}</span><span class="small">${words}</span></a>`;

function pressureTile({ severity, headroom, firstMetMs }: FleetNode, nowMs: number): Html {
  const [first] = headroom;
  const next = first === undefined ? undefined : nextThreshold(headroom, first);
  const then =
    next === undefined ? "" : `, and below ${limitText(next)} (${next.type}) ${whenText(next.soonMs, nowMs)}`;
  const words =
    first === undefined
      ? "no eviction pass shows what is left"
      : html`<span title="${first.type} threshold ${first.threshold}">${leftText(first, firstMetMs, nowMs)}${then}</span>`;
  return html`<a class="card tile" href="#eviction"><span class="soft small">State</span><span class="figure">${severityTag(severity)}</span><span class="small">${words}</span></a>`;
}

function leftText(first: FleetNode["headroom"][number], metMs: number | null, nowMs: number): string {
  const when = metMs === null || first.distance < 0 ? "" : `, met ${whenText(metMs, nowMs)}`;
  return `${first.signal}: ${headroomText(first)}${when}`;
}
/** When a threshold is met by the newest pass; a time in the past means that no pass has come since. */
const whenText = (atMs: number, nowMs: number): string =>
  atMs > nowMs ? `in ${durationText(atMs - nowMs)}` : `by now: it was due ${durationText(nowMs - atMs)} ago`;

/** Longer pod names are truncated inside. */
const LONGEST = 84;
function wholeName({ namespace, name }: PodRef): Html {
  const shown = name.length > LONGEST ? `${name.slice(0, LONGEST - 16)}…${name.slice(-12)}` : name;
  return html`<span class="small">${namespace}</span><br>${shown}`;
}

/** The pod that is evicted first for memory, or for the resource that a pass acts on. */
function nextTile(node: string, decision: EvictionDecision | null): Html {
  const acted = decision?.reclaim?.threshold.signal;
  const rankings = decision?.rankings ?? [];
  const ranking =
    rankings.find(({ signals }) => signals.some((signal) => signal === acted)) ??
    rankings.find(({ resource }) => resource === "memory");
  const first: RankedPod | undefined = ranking?.pods.find(({ critical }) => !critical);
  if (ranking === undefined || first === undefined)
    return tile("Evicted first", html`<span class="soft">–</span>`, "no pod is ranked", "#eviction");
  const { resource } = ranking;
  const uses = first.usage === null ? "no stats" : `uses ${amountText(resource, first.usage)}`;
  const asked = first.request === 0 ? ", no request" : ` of ${amountText(resource, first.request)} requested`;
  const above = first.exceedsRequest === true ? asked : "";
  return html`<div class="card tile"><span class="soft small">Evicted first, for ${resource}</span><span class="figure pod" title="${podName(first.pod)}">${podLink(node, first.pod, wholeName(first.pod))}</span><span class="small">${uses}${above}, priority ${first.priority}</span></div>`;
}

/** Refusals by decisions, by reports of the kubelet, and by pods in the newest snapshot: one pod may be in all three. */
function refusedTile({ fleet, day, row, seen }: NodeView): Html {
  const ends = seen.state === "known" ? endsIn(seen.known.snapshot).filter(({ isRefusal }) => isRefusal) : [];
  const refused = Math.max(day.refused, fleet?.kubeletRefused ?? 0, ends.length);
  if (refused === 0 && (fleet === null || !knowsRefusals(fleet)))
    return tile("Refused", REFUSALS_NOT_KNOWN, "what its kubelet refuses is not reported", "#pods");
  const refusals = [...(fleet?.refusals ?? []), ...(fleet?.kubeletRefusals ?? []), ...ends];
  const reasons = refusals.map(({ reason }) => reason);
  const words = refused === 0 ? "no pod in 24 hours" : [...new Set(reasons)].slice(0, 3).join(", ") || "in 24 hours";
  const isInSnapshotOnly = refused === ends.length && day.refused === 0;
  const href =
    isInSnapshotOnly && refused > 0
      ? "#failed-pods"
      : `/nodes/${encodeURIComponent(row.name)}/decisions?verdict=refused`;
  return tile("Refused", String(refused), words, href, refused === 0 ? "" : "warn-text");
}

function driftTile({ reports }: NodeView): Html {
  if (reports === null)
    return tile("Drift", html`<span class="soft">–</span>`, "no daemon has reported its files", "#cgroups");
  const { open, corrected, byPath, atMs } = reports;
  if (reports.isOfEarlierPass) return tile("Drift", "0", html`none since ${moment(atMs)}`, "#cgroups");
  const files = [...byPath.values()].flatMap((of) => [...of.values()]);
  const first = files.find(isOpen);
  const words = first === undefined ? `${many(corrected, "file")} put right` : `${first.path} ${first.file}`;
  return tile("Drift", String(open), words, "#cgroups", open === 0 ? "" : "warn-text");
}
