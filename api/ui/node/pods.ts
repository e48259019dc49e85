import { podsOfNode } from "../../decide/pods/node-pods.ts";
import { podLimits, podRequests, unitsOf } from "../../decide/resources/pod-resources.ts";
import { qosClass } from "../../decide/resources/qos.ts";
import type { Amounts } from "../../model/aggregate.ts";
import type { EvictionDecision } from "../../model/eviction.ts";
import { endOf, isActive, namespacedPodName, type Pod, type PodEnd, podRef, podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { many } from "../../text/sentences/words.ts";
import { amountText } from "../../text/size.ts";
import { healthTexts } from "../../text/tables/devices.ts";
import { html, podLink } from "../html.ts";
import type { Html } from "../page.ts";
import { whatIfLink } from "../what-if/change.ts";
import type { Lists } from "./lists.ts";
import type { Known } from "./node-decisions.ts";
import { type NodeView, passOf, scrolling, section } from "./view.ts";

/** A pod as its row tells of it. */
interface Row {
  readonly pod: Pod;
  readonly requests: Amounts;
  readonly limits: Amounts;
  /** Bytes of its working set; null: no stats tell. */
  readonly used: number | null;
  /** Percent of the last minute in which all its tasks waited for CPU (the pressure `cpu.psi.full.avg60`); null: no stats tell. */
  readonly waits: number | null;
  /** Restarts of all its containers; null: no status tells. */
  readonly restarts: number | null;
  /** What is told of devices that are Unhealthy. */
  readonly ill: readonly string[];
  /** When it goes for want of memory: 1 is the first; null: not ranked. */
  readonly place: number | null;
}

/** The pods that count on the node, those first that go first for want of memory, then the largest. */
export function podsSection({ snapshot }: Known, view: NodeView, lists: Lists): Html {
  if (snapshot.pods === undefined) return html``;
  const stats = new Map((snapshot.stats?.pods ?? []).map((of) => [of.podRef.uid, of]));
  const places = placesIn(passOf(view));
  const rows = podsOfNode(snapshot)
    .filter(isActive)
    .map((pod): Row => {
      const uid = podUid(pod) ?? "";
      return {
        pod,
        requests: podRequests(pod),
        limits: podLimits(pod),
        used: stats.get(uid)?.memory?.workingSetBytes ?? null,
        waits: stats.get(uid)?.cpu?.psi?.full?.avg60 ?? null,
        restarts: restartsOf(pod),
        ill: statusesOf(pod).flatMap((status) => healthTexts(status, "ill").map((text) => `${status.name}: ${text}`)),
        place: places.get(uid) ?? null,
      };
    })
    .sort((a, b) => (a.place ?? LAST) - (b.place ?? LAST) || (b.used ?? 0) - (a.used ?? 0));
  const { shown, note } = lists.cut("pods", rows);
  const head = [
    "Pod",
    "QoS",
    "Priority",
    "CPU request",
    "limit",
    "Memory request",
    "limit",
    "uses",
    "CPU wait",
    "Restarts",
    "Eviction order",
    "Try",
  ];
  const table = html`<table><thead><tr>${head.map((name, i) => html`<th class="${i < 2 || i === head.length - 1 ? "" : "num"}">${name}</th>`)}</tr></thead><tbody>${shown.map((row) => rowOf(row, view.row.name))}</tbody></table>`;
  return section(
    "pods",
    "Pods",
    html`<p>${many(rows.length, "pod")}${orderText(rows)}.</p>
${failedPods(snapshot, view.row.name, lists)}
${scrolling("Requests, limits and use of pods", table)}${note}${rows.some(({ waits }) => waits !== null) ? html`<p class="small soft">CPU wait: the share of the last minute in which none of the pod’s tasks ran, as all waited for a CPU (<code>cpu.psi.full.avg60</code>): on a busy node, or at its limit.</p>` : ""}`,
  );
}

/** Pods of the snapshot that are over, with the words of their status: what the kubelet refused is told first. */
export const endsIn = (snapshot: Snapshot): readonly PodEnd[] =>
  podsOfNode(snapshot)
    .flatMap((pod) => endOf(pod) ?? [])
    .sort((a, b) => Number(b.isRefusal) - Number(a.isRefusal));

function failedPods(snapshot: Snapshot, node: string, lists: Lists): Html {
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

/** A pass records the first of a ranking only, and critical pods have no place in it. */
function orderText(rows: readonly Row[]): string {
  const ranked = rows.filter(({ place }) => place !== null).length;
  if (ranked === 0) return "";
  if (ranked === rows.length) return ", in the order in which they go for want of memory";
  return ": first those that go for want of memory, in that order, then the others by use";
}

const statusesOf = ({ status }: Pod) => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];
function restartsOf(pod: Pod): number | null {
  const told = statusesOf(pod).flatMap(({ restartCount }) => restartCount ?? []);
  return told.length === 0 ? null : told.reduce((sum, count) => sum + count, 0);
}
const LAST = Number.MAX_SAFE_INTEGER;

/** A pass of another version may have another form. */
function placesIn(decision: EvictionDecision | null): ReadonlyMap<string, number> {
  const ranking = decision?.rankings?.find?.(({ resource }) => resource === "memory");
  return new Map((ranking?.pods ?? []).filter(({ critical }) => !critical).map(({ pod, place }) => [pod.uid, place]));
}

/** Percent of waiting that is told in colour. */
const MUCH = 10;
function rowOf({ pod, requests, limits, used, waits, restarts, ill, place }: Row, node: string): Html {
  const amount = (of: Amounts, resource: string): string => {
    const found = of.get(resource);
    return found === undefined ? "–" : amountText(resource, unitsOf(resource, found));
  };
  const memory = requests.get("memory");
  const isAbove = used !== null && memory !== undefined && used > unitsOf("memory", memory);
  return html`<tr><td>${podLink(node, podRef(pod))}${ill.map((text) => html`<br><span class="small warn-text">${text}</span>`)}</td><td>${qosClass(pod)}</td><td class="num">${pod.spec.priority ?? 0}</td><td class="num">${amount(requests, "cpu")}</td><td class="num">${amount(limits, "cpu")}</td><td class="num">${amount(requests, "memory")}</td><td class="num">${amount(limits, "memory")}</td><td class="num${isAbove ? " warn-text" : ""}">${used === null ? "–" : amountText("memory", used)}</td><td class="num${(waits ?? 0) >= MUCH ? " warn-text" : ""}">${waits === null ? "–" : `${waits.toFixed(waits < 10 ? 1 : 0)}\u00a0%`}</td><td class="num${(restarts ?? 0) > 0 ? " warn-text" : ""}">${restarts ?? "–"}</td><td class="num">${place ?? "–"}</td><td>${resizeLink(pod, node)}</td></tr>`;
}

/** Leads to the form with what its first container requests, to be changed there; a pod that requests nothing cannot be resized. */
function resizeLink(pod: Pod, node: string): Html | string {
  const [first] = pod.spec.containers;
  const { cpu, memory } = first?.resources?.requests ?? {};
  const amounts = Object.entries({ cpu, memory }).flatMap(([name, amount]) =>
    amount ? [`${name}=${amount.text}`] : [],
  );
  const link = whatIfLink({ node, resize: `${namespacedPodName(pod)} ${first?.name} ${amounts.join(",")}` });
  return amounts.length === 0 || link === null ? "–" : (html`<a href="${link}">resize</a>` as Html);
}
