import { type FleetRow, seriesOf } from "../../../db/rows.ts";
import type { Result } from "../../base/result.ts";
import { podsOfNode } from "../../decide/pods/node-pods.ts";
import type { Reply } from "../../dependencies.ts";
import { findNode } from "../../http/nodes.ts";
import type { Exchange } from "../../http/route.ts";
import { KINDS } from "../../model/decision.ts";
import { type KindWith, verdictLabel } from "../../model/kinds.ts";
import { isActive } from "../../model/pod.ts";
import type { OutcomeWord, ProbedContainer, ProbeRun, ProbesDecision } from "../../model/probes-decision.ts";
import type { Problem } from "../../service/problem.ts";
import { many } from "../../text/sentences/words.ts";
import { durationText } from "../../text/time-text.ts";
import { agreementLink } from "../agreement-page.ts";
import { lane, type Stretch } from "../draw/bars.ts";
import { ago, html, moment } from "../html.ts";
import { type Html, page, prose } from "../page.ts";
import { drawFailureHandler, recordPart } from "../record-part.ts";
import { decisionsTable, urgencyOf, verdictTag } from "../verdict-tag.ts";
import { capacitySection } from "./capacity.ts";
import { cgroupsSection } from "./cgroups.ts";
import { claimsSection, usesClaims } from "./claims.ts";
import { cpusSection } from "./cpus.ts";
import { devicesSection, memorySection } from "./devices.ts";
import { evictionSection } from "./eviction.ts";
import { glance } from "./glance.ts";
import { imagesSection } from "./images.ts";
import { listPage } from "./list-page.ts";
import { askedPart, ListView } from "./lists.ts";
import { podsSection } from "./pods.ts";
import { type DecidedSnapshot, folded, type NodeView, nodeView, type ProbedPod } from "./view.ts";

/** The dry runs of probes that were recorded, as lanes of time. */
function probesSection({ probed, row: { name, lastSnapshotId }, undrawn }: NodeView): Html {
  if (probed.length > 0)
    return folded(
      "probes",
      "Probe timelines",
      html`${probed.map((pod) => recordPart(pod.head, undrawn, () => podLanes(pod)))}${LEGEND}
<p class="small rest">Of each pod the newest, of the pods probed last: ${probed.length} · <a href="/nodes/${encodeURIComponent(name)}/decisions?kind=probes">all recorded dry runs</a></p>`,
      false,
    );
  const asked = { snapshotId: lastSnapshotId ?? "ID", ask: { pod: "NAMESPACE/NAME", outcomes: "ok,ok,fail*3" } };
  return folded(
    "probes",
    "Probe timelines",
    html`<p>No dry run of a pod’s probes is recorded for this node. This makes one, with the answers that you name:</p>
<pre tabindex="0" data-copy="the command">curl -X POST -H 'content-type: application/json' "$API/v1/decisions/probes" -d '${JSON.stringify(asked)}'</pre>
<p class="small soft">The results of the node’s own probes are on the node: <code>nodewise probes</code>, <code>nodewise probes history</code>.</p>`,
    false,
  );
}

const OUTCOME: Readonly<Record<OutcomeWord, readonly [tone: string, height: number, words: string]>> = {
  ok: ["good", 0.5, "ok"],
  warn: ["warn", 0.5, "ok with a warning"],
  fail: ["bad", 1, "failed"],
  timeout: ["bad", 1, "no answer in time: failed"],
  hang: ["warn", 1, "the answer broke off"],
  error: ["warn", 1, "could not be run"],
};
const LEGEND = html`<ul class="legend"><li class="good">status: ready; probe: ok (half as high)</li><li class="warn">started, not ready; a warning, or no clear answer</li><li class="bad">failed (full height), restarted or ended</li><li class="faint">runs, not started; on hold</li></ul>`;
/** Attempts shown of one probe; the decision has all. */
const MAX_ATTEMPTS = 300;

function podLanes({ head, decision }: ProbedPod): Html {
  const { containers, endMs } = decision;
  const name = head.pod === null ? "a pod" : `${head.pod.namespace}/${head.pod.name}`;
  return html`<div class="card lanes"><p><strong>${name}</strong> ${verdictTag(head.verdict)} ${summary(decision)}, decided ${moment(seriesOf(head).lastAtMs)}, <a href="/decisions/${head.id}">why</a></p>
${containers.map((container) => containerLanes(container, { endMs, id: head.id }))}
<div class="lane-row scale"><span></span><span><span>0s</span><span>${durationText(endMs / 2)}</span><span>${durationText(endMs)}</span></span></div></div>`;
}

function summary({ restarts, endMs, ready, containers }: ProbesDecision): string {
  const probes = containers.reduce((sum, container) => sum + container.probes.length, 0);
  const state = ready?.length > 0 ? "" : ", never ready";
  return `${many(probes, "probe")} in ${durationText(endMs)}: ${many(restarts, "restart")}${state}`;
}

interface DryRun {
  readonly id: string;
  readonly endMs: number;
}
function containerLanes(container: ProbedContainer, run: DryRun): Html {
  const { endMs } = run;
  const { container: name, runs, started, ready, probes, restarts } = container;
  const until = (toMs: number | null): number => toMs ?? endMs;
  const spans = (list: readonly { fromMs: number; toMs: number | null }[], tone: string, words: string): Stretch[] =>
    list.map(({ fromMs, toMs }) => ({ fromMs, toMs: until(toMs), tone, height: 1, words }));
  const lives = runs.map(({ startedAtMs, endedAtMs }) => ({ fromMs: startedAtMs, toMs: endedAtMs }));
  const ends = runs.flatMap(({ endedAtMs, endedBy }): Stretch[] =>
    endedAtMs === null
      ? []
      : [
          {
            fromMs: endedAtMs,
            toMs: null,
            tone: "bad",
            height: 1,
            words: `ended at ${durationText(endedAtMs)}${endedBy === null ? "" : ` by its ${endedBy} probe`}`,
          },
        ],
  );
  const status = [
    ...spans(lives, "faint", "runs, not started"),
    ...spans(started, "warn", "started, not ready"),
    ...spans(ready, "good", "ready"),
    ...ends,
  ];
  const words = `${name}: ${many(restarts, "restart")}, ${ready.length === 0 ? "never ready" : `ready from ${durationText(ready[0]?.fromMs ?? 0)}`}`;
  return html`<h3>${name}</h3><div class="lane-row"><span>status</span>${lane(status, endMs, words)}</div>${probes.map((probe) => probeLane(probe, name, run))}`;
}

function probeLane({ type, handler, attempts, onHold }: ProbeRun, container: string, { id, endMs }: DryRun): Html {
  const shown = attempts.slice(0, MAX_ATTEMPTS);
  const failed = attempts.filter(({ outcome }) => OUTCOME[outcome]?.[1] === 1).length;
  const marks = shown.map(({ atMs, outcome }): Stretch => {
    const [tone, height] = OUTCOME[outcome] ?? ["faint", 0.5];
    return { fromMs: atMs, toMs: null, tone, height };
  });
  const holds = onHold.map(
    ({ fromMs, toMs }): Stretch => ({ fromMs, toMs: toMs ?? endMs, tone: "faint", height: 0.25, words: "on hold" }),
  );
  const words = `${type} probe (${handler}) of ${container}: ${many(attempts.length, "attempt")}, ${failed} failed`;
  return html`<div class="lane-row"><span>${type}</span>${lane([...holds, ...marks], endMs, words)}</div><p class="small soft lane-note">${handler}: ${many(attempts.length, "attempt")}, ${failed} failed${attempts.length > shown.length ? html`; ${shown.length} of ${attempts.length} drawn · <a href="/v1/decisions/${id}">all, as JSON</a>` : ""}</p>`;
}

/** GET /nodes/{node}: all that is known of a node, drawn; with `list`, a page of one of its lists. */
export async function getNodePage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const asked = askedPart(exchange);
  if (!asked.ok) return asked;
  const { list, range } = asked.value;
  const found = await findNode(exchange);
  if (!found.ok) return found;
  const { store, now } = exchange.deps;
  const view = await nodeView(store, found.value, now(), { undrawn: drawFailureHandler(exchange), range });
  if (!view.ok) return view;
  if (list !== null) return listPage(exchange, view.value, list);
  return page(found.value.name, contentOf(view.value, now()), {
    assets: ["uplot.css", "uplot.js", "plots.js"],
    live: found.value.name,
  });
}

/** A part of the page: its id, its title, and whether it is present. `known`: null if there is no snapshot. */
type PagePart = readonly [id: string, title: string, isThere: (known: DecidedSnapshot | null) => boolean];
const always = () => true;
const isKnown = (known: DecidedSnapshot | null): boolean => known !== null;
/** In the order of the page. */
const PARTS: Readonly<Record<KindWith<"nodePage", "snapshot" | "history"> | "pods" | "decisions", PagePart>> = {
  allocatable: ["capacity", "Capacity", isKnown],
  eviction: ["eviction", "Eviction", always],
  pods: ["pods", "Pods", isKnown],
  cgroups: ["cgroups", "Cgroups", isKnown],
  cpus: ["cpus", "CPUs", isKnown],
  memory: ["memory", "NUMA memory", isKnown],
  devices: ["devices", "Devices", isKnown],
  claims: ["claims", "Claims", (known) => known !== null && usesClaims(known)],
  "image-gc": ["images", "Images", isKnown],
  probes: ["probes", "Probes", always],
  decisions: ["decisions", "Decisions", always],
};

function contentOf(view: NodeView, nowMs: number): Html {
  const { seen } = view;
  const lists = new ListView(view.row.name);
  const known = seen.state === "known" ? seen.known : null;
  const parts = Object.values(PARTS).filter(([, , isThere]) => isThere(known));
  return html`${headOf(view, nowMs)}
<nav class="parts" aria-label="On this page">${parts.map(([id, title]) => html`<a href="#${id}">${title}</a>`)}</nav>
${known === null ? noSnapshot(view) : html`${capacitySection(known)}`}
${evictionSection(view, lists)}
${known === null ? "" : fromSnapshot(known, view, lists)}
${probesSection(view)}
${newestSection(view)}`;
}

/** With at most this many CPUs, their map leaves room for another part beside it. */
const FEW_CPUS = 32;
const fromSnapshot = (
  known: DecidedSnapshot,
  view: NodeView,
  lists: ListView,
): Html => html`${podsSection(known, view, lists)}
${cgroupsSection(known, view.reports, lists)}
<div class="${(known.snapshot.machine?.cpus ?? []).length > FEW_CPUS ? "" : "halves wide"}">${cpusSection(known, lists)}${memorySection(known, lists)}</div>
${devicesSection(known, lists)}
${usesClaims(known) ? claimsSection(known, lists) : ""}
${imagesSection(known, view.imageGc, lists)}`;

/** Why nothing of the node itself can be drawn, and what to do about it. */
function noSnapshot({ seen, row: { name } }: NodeView): Html {
  const how = html`<p>Capacity, cgroups, CPUs, memory, devices and images are drawn of a node’s newest snapshot. On the node:</p>
<pre tabindex="0" data-copy="the command">nodewise snapshot &gt; snapshot.json
curl -X PUT -H 'content-type: application/json' --data-binary @snapshot.json "$API/v1/nodes/${encodeURIComponent(name)}/snapshot"</pre>
<p class="small soft">An actuator (<code>nodewise up</code>, <code>nodewise actuator</code>) posts one with every pass.</p>`;
  const why = whyOf(seen);
  return html`<section id="snapshot" data-live aria-label="Snapshot"><div class="note warn"><p>${why}</p></div>${how}</section>`;
}

function whyOf(seen: NodeView["seen"]): Html {
  switch (seen.state) {
    case "never":
    case "known":
      return html`No snapshot of this node was posted yet.`;
    case "gone":
      return html`The newest snapshot of this node (<code>${seen.snapshotId.slice(0, 12)}</code>) is no longer stored: old ones are removed with the decisions that they belong to.`;
    case "damaged":
      return html`The newest snapshot of this node cannot be read: ${prose(seen.fault)}.`;
    case "unreadable": {
      const [first] = seen.issues;
      const more = seen.issues.length > 1 ? `, and ${many(seen.issues.length - 1, "more fault")}` : "";
      return html`The newest snapshot of this node (<a href="/v1/snapshots/${seen.row.id}"><code>${seen.row.id.slice(0, 12)}</code></a>, stored ${moment(seen.row.storedAtMs)}) cannot be read by this version: <code>${first?.path || "snapshot"}</code> ${first?.message}${more}.`;
    }
  }
}

const newestSection = ({ newest, row: { name } }: NodeView): Html =>
  folded(
    "decisions",
    "Newest decisions",
    html`${decisionsTable(newest, { ofOneNode: true })}<p><a href="/nodes/${encodeURIComponent(name)}/decisions">All decisions of this node, by kind, verdict, pod and time</a></p>`,
    false,
  );

/** The node's identity, its state by its newest decision of each kind, and its refusals and evictions in a day. */
function headOf(view: NodeView, nowMs: number): Html {
  const { row, fleet, day, seen } = view;
  const { name, lastSeenMs, firstSeenMs, bootId, lastSequence, lastSnapshotId } = row;
  const deletedMs = fleet?.deletedMs ?? null;
  const snapshot = seen.state === "known" ? seen.known.snapshot : undefined;
  const info = snapshot?.node?.status?.nodeInfo;
  const active = snapshot?.pods === undefined ? null : podsOfNode(snapshot).filter(isActive).length;
  const shortly = [
    ...(info?.kubeletVersion === undefined ? [] : [`Kubelet ${info.kubeletVersion}`]),
    ...(snapshot?.cgroup === undefined ? [] : [`cgroups ${cgroupText(snapshot.cgroup)}`]),
    ...(active === null ? [] : [many(active, "pod")]),
  ];
  const pairs: readonly (readonly [string, Html | string | undefined])[] = [
    ["Last seen", html`${moment(lastSeenMs)}`],
    ["Deleted", deletedMs === null ? undefined : html`${ago(deletedMs)}, by its cluster`],
    ["First seen", html`${moment(firstSeenMs)}`],
    ["Kubelet", info?.kubeletVersion],
    ["Kernel", info?.kernelVersion],
    ["Cgroups", snapshot?.cgroup && cgroupText(snapshot.cgroup)],
    ["Pods", active === null ? undefined : `${active}`],
    ["Boot", (bootId ?? info?.bootID) && html`<code>${bootId ?? info?.bootID}</code>`],
    ["Snapshot", lastSnapshotId === null ? "none" : snapshotText(view, lastSnapshotId)],
    ["Sequence", lastSequence === null ? undefined : `${lastSequence}`],
    ["JSON", html`<a href="/v1/nodes/${encodeURIComponent(name)}">/v1/nodes/${name}</a>`],
  ];
  const present = pairs.filter(([, value]) => value !== undefined && value !== "");
  return html`<section id="head" data-live aria-label="The node">
${verdicts(view)}
${glance(view, nowMs)}
<details id="facts"><summary>${[...shortly, ""].join(", ")}last seen ${ago(lastSeenMs)}</summary><dl class="facts">${present.map(([what, value]) => html`<div><dt>${what}</dt><dd>${value}</dd></div>`)}</dl>${fleet === null ? "" : dayText(day)}</details>
${fleet === null ? "" : kubeletText(fleet)}</section>`;
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
  }).sort((a, b) => urgencyOf(b.verdict) - urgencyOf(a.verdict));
  if (latest.length === 0) return html`<p class="soft">Nothing was decided about this node yet.</p>`;
  return html`<ul class="verdicts" aria-label="The newest decision of each kind">${latest.map(
    ({ kind, decisionId, verdict, reason }) =>
      html`<li><a href="/decisions/${decisionId}">${kind}</a> ${verdictTag(verdict, reason, verdictLabel({ kind, verdict }))}</li>`,
  )}</ul>`;
}

const MAX_REASONS = 5;
/** The numbers of pods that the kubelet refused and evicted, with links to the comparison with decisions. */
function kubeletText({ name, kubeletRefused, kubeletRefusals, kubeletEvicted }: FleetRow): Html {
  if (kubeletRefused + kubeletEvicted === 0) return html``;
  const link = (reason: string, count: number): Html =>
    html` <a href="${agreementLink({ node: name, reason, verdict: "all" })}">${reason} ${count}</a>`;
  const reasons = kubeletRefusals.slice(0, MAX_REASONS).map(({ reason, count }) => link(reason, count));
  if (kubeletEvicted > 0) reasons.push(link("Evicted", kubeletEvicted));
  return html`<p class="small">In the last 24 hours its kubelet refused ${many(kubeletRefused, "pod")} and evicted ${many(kubeletEvicted, "pod")}:${reasons}</p>`;
}

function dayText({ decisions, refused, pressured, evicted, removed }: NodeView["day"]): Html {
  const counts = [
    [refused, "refused"],
    [pressured, "under pressure"],
    [evicted, "evicting"],
    [removed, "removing"],
  ] as const;
  const parts = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return html`<p class="soft small">In the last 24 hours: ${many(decisions, "decision")}${parts.length === 0 ? "" : `, of them ${parts.join(", ")}`}.</p>`;
}
