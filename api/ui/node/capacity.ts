import { podsOfNode } from "../../decide/pods/node-pods.ts";
import { podRequests, unitsOf } from "../../decide/resources/pod-resources.ts";
import type { AllocatableDecision } from "../../model/allocatable.ts";
import { isActive, type Pod } from "../../model/pod.ts";
import { humanBytes, isBytes, magnitude } from "../../text/size.ts";
import { type Segment, stackBar } from "../draw/bars.ts";
import { bytesShown, html, quantityShown } from "../html.ts";
import type { Html } from "../page.ts";
import { type DecidedSnapshot, refusedText, scrolling, section } from "./view.ts";

const TAKEN = [
  ["kubeReserved", "kubeReserved", "c5"],
  ["systemReserved", "systemReserved", "c4"],
  ["evictionHard", "evictionHard", "c6"],
] as const;
const LEGEND = [
  ["c0", "requested by pods"],
  ["over", "requested beyond allocatable"],
  ["free", "free"],
  ...TAKEN.map(([, words, tone]) => [tone, words] as const),
  ["rest", "other deductions (huge pages, devices that do not count)"],
] as const;

interface Resource {
  readonly name: string;
  readonly capacity: number;
  readonly allocatable: number;
  readonly requested: number;
  /** The amounts that are subtracted, as in `TAKEN`. */
  readonly taken: readonly number[];
}

/** Capacity to allocatable to requested, a bar a resource. */
export function capacitySection({ snapshot, decided }: DecidedSnapshot): Html {
  const { allocatable } = decided;
  if (!allocatable.ok) return section("capacity", "Capacity", refusedText(allocatable.error));
  const { decision } = allocatable.value;
  const requested = requestedBy(podsOfNode(snapshot));
  const all = Object.keys(decision.capacity).map((name) => resourceOf(name, decision, requested));
  const present = all.filter(({ capacity, requested: asked }) => capacity > 0 || asked > 0);
  const absent = all.filter((one) => !present.includes(one)).map(({ name }) => name);
  const tones = new Set(present.flatMap((one) => segmentsOf(one).filter(({ size }) => size > 0)).map((s) => s.tone));
  return section(
    "capacity",
    "Capacity to allocatable to requested",
    html`${decision.errors.map((error) => html`<p class="note bad">The kubelet does not start: ${error}</p>`)}
<div class="card bars">${present.map(row)}
<ul class="legend">${LEGEND.filter(([tone]) => tones.has(tone)).map(([tone, words]) => html`<li class="${tone}">${words}</li>`)}</ul></div>
<details id="capacity-numbers"><summary>The numbers</summary>${numbers(present, decision)}
${absent.length === 0 ? "" : html`<p class="small soft">The node has none of ${absent.join(", ")}.</p>`}</details>`,
  );
}

/** Sums the requests of pods that have not ended, in units (a CPU is 1). */
function requestedBy(pods: readonly Pod[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>([["pods", 0]]);
  for (const pod of pods) {
    if (!isActive(pod)) continue;
    sums.set("pods", (sums.get("pods") ?? 0) + 1);
    for (const [name, amount] of podRequests(pod)) sums.set(name, (sums.get(name) ?? 0) + unitsOf(name, amount));
  }
  const milli = sums.get("cpu");
  if (milli !== undefined) sums.set("cpu", milli / 1000);
  return sums;
}

const resourceOf = (
  name: string,
  { capacity, allocatable, reserved }: AllocatableDecision,
  requested: ReadonlyMap<string, number>,
): Resource => ({
  name,
  capacity: magnitude(capacity[name]),
  allocatable: magnitude(allocatable[name]),
  requested: requested.get(name) ?? 0,
  taken: TAKEN.map(([key]) => magnitude(reserved[key]?.[name])),
});

const amountOf = (name: string, units: number): string =>
  isBytes(name) ? humanBytes(units) : `${Math.round(units * 1000) / 1000}`;

function segmentsOf({ name, capacity, allocatable, requested, taken }: Resource): readonly Segment[] {
  const within = Math.min(requested, allocatable);
  const rest = capacity - allocatable - taken.reduce((a, b) => a + b, 0);
  const sizes = [within, requested - within, allocatable - within, ...taken, rest];
  return sizes.map((size, i) => {
    const [tone, words] = LEGEND[i] as (typeof LEGEND)[number];
    return { size: Math.max(0, size), tone, words: `${words}: ${amountOf(name, size)}` };
  });
}

function row(one: Resource): Html {
  const { name, allocatable, capacity, requested } = one;
  const amount = (units: number): string => amountOf(name, units);
  const share = allocatable > 0 ? ` (${Math.round((requested / allocatable) * 100)} %)` : "";
  const left = allocatable - requested;
  const words = `${name}: ${amount(requested)} of ${amount(allocatable)} requested${share}, capacity ${amount(capacity)}`;
  return html`<div class="bar-row"><div><strong>${name}</strong> <span>${amount(requested)} of ${amount(allocatable)} requested${share}, ${
    left < 0 ? html`<strong class="bad-text">${amount(-left)} too much</strong>` : `${amount(left)} free`
  }<span class="soft">; capacity ${amount(capacity)}</span></span></div>${stackBar(segmentsOf(one), words)}</div>`;
}

function numbers(resources: readonly Resource[], decision: AllocatableDecision): Html {
  const cell = (name: string, text: string | undefined): Html | string =>
    text === undefined || text === "0" ? "–" : quantityShown(name, text);
  const amount = (name: string, units: number): Html | string =>
    isBytes(name) ? bytesShown(units) : amountOf(name, units);
  const line = ({ name, requested, allocatable }: Resource): Html => html`<tr><th scope="row">${name}</th>
<td class="num">${cell(name, decision.capacity[name])}</td>${TAKEN.map(([key]) => html`<td class="num">${cell(name, decision.reserved[key]?.[name])}</td>`)}
<td class="num">${cell(name, decision.allocatable[name])}</td><td class="num">${amount(name, requested)}</td><td class="num">${amount(name, allocatable - requested)}</td></tr>`;
  return scrolling(
    "Amounts of each resource",
    html`<table><thead><tr><th>Resource</th><th class="num">Capacity</th>${TAKEN.map(([, title]) => html`<th class="num">${title}</th>`)}<th class="num">Allocatable</th><th class="num">Requested</th><th class="num">Free</th></tr></thead><tbody>${resources.map(line)}</tbody></table>`,
  );
}
