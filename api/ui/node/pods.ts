import { podsOfNode } from "../../decide/pods/node-pods.ts";
import { podLimits, podRequests, unitsOf } from "../../decide/resources/pod-resources.ts";
import { qosClass } from "../../decide/resources/qos.ts";
import type { Amounts } from "../../model/aggregate.ts";
import type { EvictionDecision, Ranking } from "../../model/eviction.ts";
import { endOf, isActive, namespacedPodName, type Pod, type PodEnd, podRef, podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { NEAR_LIMIT } from "../../service/why/throttled.ts";
import { many } from "../../text/sentences/words.ts";
import { amountText } from "../../text/size.ts";
import { healthTexts } from "../../text/tables/devices.ts";
import { html, podLink } from "../html.ts";
import type { Html } from "../page.ts";
import { whatIfLink } from "../what-if/change.ts";
import type { ListView } from "./lists.ts";
import { type DecidedSnapshot, type NodeView, passOf, scrolling, section } from "./view.ts";

/** A row of the pods table. */
interface Row {
  readonly pod: Pod;
  readonly requests: Amounts;
  readonly limits: Amounts;
  /** Bytes of its working set; null: not in the stats. */
  readonly used: number | null;
  /** Thousandths of a CPU that it recently used; null: not in the stats. */
  readonly cpu: number | null;
  /** Thousandths of the CFS periods in which a quota throttled it; null: not known. */
  readonly throttled: number | null;
  /** Percent of the last minute in which all its tasks waited for CPU (the pressure `cpu.psi.full.avg60`); null: not in the stats. */
  readonly waits: number | null;
  /** Restarts of all its containers; null: not in the status. */
  readonly restarts: number | null;
  /** The texts about Unhealthy devices. */
  readonly ill: readonly string[];
  /** The pod's place in the eviction order for memory, from 1; null: not ranked. */
  readonly place: number | null;
  /** The pass ranks it, and passes it over. */
  readonly isCritical: boolean;
}

/** The pods that count on the node: those evicted first for memory, then the largest. */
export function podsSection({ snapshot }: DecidedSnapshot, view: NodeView, lists: ListView): Html {
  if (snapshot.pods === undefined) return html``;
  const stats = new Map((snapshot.stats?.pods ?? []).map((of) => [of.podRef.uid, of]));
  const ranking = rankingIn(passOf(view));
  const ranked = new Map((ranking?.pods ?? []).map((of) => [of.pod.uid, of]));
  const rows = podsOfNode(snapshot)
    .filter(isActive)
    .map((pod): Row => {
      const uid = podUid(pod) ?? "";
      const rank = ranked.get(uid);
      const isCritical = rank?.critical === true;
      return {
        pod,
        requests: podRequests(pod),
        limits: podLimits(pod),
        used: stats.get(uid)?.memory?.workingSetBytes ?? null,
        cpu: milliOf(stats.get(uid)?.cpu?.usageNanoCores),
        throttled: stats.get(uid)?.cpu?.throttledPermille ?? null,
        waits: stats.get(uid)?.cpu?.psi?.full?.avg60 ?? null,
        restarts: restartsOf(pod),
        ill: statusesOf(pod).flatMap((status) => healthTexts(status, "ill").map((text) => `${status.name}: ${text}`)),
        place: rank === undefined || isCritical ? null : rank.place,
        isCritical,
      };
    })
    .sort((a, b) => (a.place ?? LAST) - (b.place ?? LAST) || (b.used ?? 0) - (a.used ?? 0));
  const { shown, note } = lists.cut("pods", rows);
  const columns = COLUMNS.filter(({ cell }) => rows.some((row) => cell(row, view.row.name) !== null));
  const table = html`<table><thead><tr><th>Pod</th>${columns.map(({ name, tone = "num" }) => html`<th class="${tone}">${name}</th>`)}</tr></thead><tbody>${shown.map((row) => rowOf(row, columns, view.row.name))}</tbody></table>`;
  const noted = columns.filter((column) => column.note !== undefined);
  const notes = html`<details id="pods-columns" class="small soft"><summary>About ${noted.map(({ name }) => name).join(", ")}</summary>${noted.map(({ name, note: text }) => html`<p>${name}: ${text}</p>`)}</details>`;
  return section(
    "pods",
    "Pods",
    html`<p>${many(rows.length, "pod")}${orderText(rows, ranking, lists.isAsked("pods"))}.</p>
${failedPods(snapshot, view.row.name, lists)}
${scrolling("Requests, limits and use of pods", table)}<div class="below">${note}${noted.length === 0 ? "" : notes}</div>`,
  );
}

/** Pods of the snapshot that have ended, with the words of their status; refused pods come first. */
export const endsIn = (snapshot: Snapshot): readonly PodEnd[] =>
  podsOfNode(snapshot)
    .flatMap((pod) => endOf(pod) ?? [])
    .sort((a, b) => Number(b.isRefusal) - Number(a.isRefusal));

function failedPods(snapshot: Snapshot, node: string, lists: ListView): Html {
  const ends = endsIn(snapshot);
  if (ends.length === 0) return html``;
  const { shown, note } = lists.cut("failed-pods", ends);
  const refused = ends.filter(({ isRefusal }) => isRefusal).length;
  const table = html`<table class="stacked"><thead><tr><th>Pod</th><th>Why, by its status</th></tr></thead><tbody>${shown.map(
    ({ pod, reason, message }) =>
      html`<tr><td>${podLink(node, podRef(pod))}</td><td class="words"><span class="warn-text">${reason}</span> ${message}</td></tr>`,
  )}</tbody></table>`;
  return html`<p id="failed-pods">${many(ends.length, "more pod")} failed${refused === 0 ? "" : `, ${refused === ends.length ? "" : `${refused} of them `}refused by the kubelet`}:</p>
${scrolling("Pods that failed", table)}${note}`;
}

/** Critical pods have no place in a ranking. */
function orderText(rows: readonly Row[], ranking: Ranking | undefined, isWhole: boolean): string {
  const placed = rows.filter(({ place }) => place !== null).length;
  if (placed === 0) return "";
  if (placed === rows.length) return ", in the order in which they would be evicted for memory";
  const { pods, total } = ranking ?? { pods: [], total: 0 };
  const limitation =
    isWhole && pods.length < total
      ? ` (the first ${pods.length} of ${total} are recorded of that pass, and its snapshot is no longer stored)`
      : "";
  return `: first those that would be evicted for memory, in that order${limitation}, then the others by use`;
}

const statusesOf = ({ status }: Pod) => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];
function restartsOf(pod: Pod): number | null {
  const counts = statusesOf(pod).flatMap(({ restartCount }) => restartCount ?? []);
  return counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0);
}
const LAST = Number.MAX_SAFE_INTEGER;

/** A pass of another version may have another form. */
const rankingIn = (decision: EvictionDecision | null): Ranking | undefined =>
  decision?.rankings?.find?.(({ resource }) => resource === "memory");

const milliOf = (nanoCores: number | undefined): number | null =>
  nanoCores === undefined ? null : Math.round(nanoCores / 1e6);

interface Column {
  readonly name: string;
  /** Absent: a number. */
  readonly tone?: "";
  /** A note below the table that explains the column. */
  readonly note?: Html;
  /** The cell; null: not known. A column without any cell is left out. */
  cell(row: Row, node: string): Html | string | null;
  /** Whether a cell is highlighted. */
  isMuch?(row: Row): boolean;
}

/** Percent of waiting or throttling from which on it is highlighted. */
const MUCH = 10;
const amount = (of: Amounts, resource: string): string | null => {
  const found = of.get(resource);
  return found === undefined ? null : amountText(resource, unitsOf(resource, found));
};
const unitsIn = (of: Amounts, resource: string): number => {
  const found = of.get(resource);
  return found === undefined ? Number.POSITIVE_INFINITY : unitsOf(resource, found);
};
const percent = (share: number | null): string | null =>
  share === null ? null : `${share.toFixed(share < 10 ? 1 : 0)}\u00a0%`;

/** The decisive columns come first: those are what a phone shows. */
const COLUMNS: readonly Column[] = [
  {
    name: "Eviction order",
    cell: ({ place, isCritical }) => (isCritical ? "critical" : (place?.toString() ?? null)),
  },
  {
    name: "Memory use",
    cell: ({ used }) => (used === null ? null : amountText("memory", used)),
    isMuch: ({ used, requests }) => (used ?? 0) > unitsIn(requests, "memory"),
  },
  { name: "Memory request", cell: ({ requests }) => amount(requests, "memory") },
  { name: "Memory limit", cell: ({ limits }) => amount(limits, "memory") },
  {
    name: "CPU use",
    cell: ({ cpu }) => (cpu === null ? null : amountText("cpu", cpu)),
    isMuch: ({ cpu, limits }) => (cpu ?? 0) >= NEAR_LIMIT * unitsIn(limits, "cpu"),
  },
  { name: "CPU request", cell: ({ requests }) => amount(requests, "cpu") },
  { name: "CPU limit", cell: ({ limits }) => amount(limits, "cpu") },
  {
    name: "Throttled",
    note: html`the share of the CFS periods since the pass before in which its CPU quota, or that of one of its containers, held it back (<code>nr_throttled</code> of <code>nr_periods</code> in its <code>cpu.stat</code>).`,
    cell: ({ throttled }) => percent(throttled === null ? null : throttled / 10),
    isMuch: ({ throttled }) => (throttled ?? 0) >= MUCH * 10,
  },
  {
    name: "CPU wait",
    note: html`the share of the last minute in which none of the pod’s tasks ran, as all waited for a CPU (<code>cpu.psi.full.avg60</code>): on a busy node, or at its limit.`,
    cell: ({ waits }) => percent(waits),
    isMuch: ({ waits }) => (waits ?? 0) >= MUCH,
  },
  {
    name: "Restarts",
    cell: ({ restarts }) => restarts?.toString() ?? null,
    isMuch: ({ restarts }) => (restarts ?? 0) > 0,
  },
  { name: "QoS", tone: "", cell: ({ pod }) => qosClass(pod) },
  { name: "Priority", cell: ({ pod }) => `${pod.spec.priority ?? 0}` },
  { name: "Try", tone: "", cell: ({ pod }, node) => resizeLink(pod, node) },
];

function rowOf(row: Row, columns: readonly Column[], node: string): Html {
  const { pod, ill } = row;
  const cells = columns.map(
    ({ name, tone = "num", cell, isMuch }) =>
      html`<td class="${tone}${isMuch?.(row) === true ? " warn-text" : ""}" data-name="${name}">${cell(row, node) ?? "–"}</td>`,
  );
  return html`<tr><td>${podLink(node, podRef(pod))}${ill.map((text) => html`<br><span class="small warn-text">${text}</span>`)}</td>${cells}</tr>`;
}

/** Leads to the form with what its first container requests, to be changed there; a pod that requests nothing cannot be resized. */
function resizeLink(pod: Pod, node: string): Html | null {
  const [first] = pod.spec.containers;
  const { cpu, memory } = first?.resources?.requests ?? {};
  const amounts = Object.entries({ cpu, memory }).flatMap(([name, amount]) =>
    amount ? [`${name}=${amount.text}`] : [],
  );
  const link = whatIfLink({ node, resize: `${namespacedPodName(pod)} ${first?.name} ${amounts.join(",")}` });
  return amounts.length === 0 || link === null ? null : (html`<a href="${link}">resize</a>` as Html);
}
