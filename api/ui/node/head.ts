import { html } from "hono/html";
import { podsOfNode } from "../../decide/cgroups/node-pods.ts";
import { KINDS } from "../../model/decision.ts";
import { isActive } from "../../model/pod.ts";
import type { Html } from "../page.ts";
import { ago, moment } from "../time.ts";
import { verdictTag } from "../verdict-tag.ts";
import { plural } from "./section.ts";
import type { NodeView } from "./view.ts";

/** Who the node is, how it stands by its newest decision of each kind, and how often it was refused or evicted in a day. */
export function headOf(view: NodeView): Html {
  const { row, fleet, day, seen } = view;
  const { name, lastSeenMs, firstSeenMs, bootId, lastSequence, lastSnapshotId } = row;
  const snapshot = seen.state === "known" ? seen.known.snapshot : undefined;
  const info = snapshot?.node?.status?.nodeInfo;
  const pairs: readonly (readonly [string, Html | string | undefined])[] = [
    ["Last seen", html`${ago(lastSeenMs)}`],
    ["First seen", html`${moment(firstSeenMs)}`],
    ["Kubelet", info?.kubeletVersion],
    ["Kernel", info?.kernelVersion],
    ["Cgroups", snapshot?.cgroup && cgroupText(snapshot.cgroup)],
    ["Pods", snapshot?.pods && `${podsOfNode(snapshot).filter(isActive).length}`],
    ["Boot", (bootId ?? info?.bootID) && html`<code>${bootId ?? info?.bootID}</code>`],
    ["Snapshot", lastSnapshotId === null ? "none" : snapshotText(view, lastSnapshotId)],
    ["Sequence", lastSequence === null ? undefined : `${lastSequence}`],
    ["JSON", html`<a href="/v1/nodes/${encodeURIComponent(name)}">/v1/nodes/${name}</a>`],
  ];
  const told = pairs.filter(([, value]) => value !== undefined && value !== "");
  return html`<section id="head" data-live aria-label="The node">
${verdicts(view)}
<dl class="facts">${told.map(([what, value]) => html`<div><dt>${what}</dt><dd>${value}</dd></div>`)}</dl>
${fleet === null ? "" : dayText(day)}</section>`;
}

const cgroupText = ({ version, driver }: { version: 1 | 2; driver?: string | undefined }): string =>
  `v${version}${driver === undefined ? "" : `, ${driver}`}`;

function snapshotText({ seen }: NodeView, id: string): Html {
  if (seen.state === "gone") return html`<code>${id.slice(0, 12)}</code>, no longer stored`;
  const at = seen.state === "known" ? seen.row.observedAtMs : null;
  return html`<a href="/v1/snapshots/${id}"><code>${id.slice(0, 12)}</code></a>${at === null ? "" : html` of ${moment(at)}`}`;
}

function verdicts({ fleet }: NodeView): Html {
  const latest = KINDS.flatMap((kind) => {
    const row = fleet?.latest[kind];
    return row === undefined ? [] : [{ kind, ...row }];
  });
  if (latest.length === 0) return html`<p class="soft">Nothing was decided about this node yet.</p>`;
  return html`<ul class="verdicts" aria-label="The newest decision of each kind">${latest.map(
    ({ kind, decisionId, verdict }) =>
      html`<li><a href="/decisions/${decisionId}">${kind}</a> ${verdictTag(verdict)}</li>`,
  )}</ul>`;
}

function dayText({ decisions, refused, pressured, evicted, removed }: NodeView["day"]): Html {
  const counts = [
    [refused, "refused"],
    [pressured, "under pressure"],
    [evicted, "evicting"],
    [removed, "removing"],
  ] as const;
  const told = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return html`<p class="soft small">In the last 24 hours: ${plural(decisions, "decision")}${told.length === 0 ? "" : `, of them ${told.join(", ")}`}.</p>`;
}
