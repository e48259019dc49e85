import type { DeviceResourceState, DevicesDecision } from "../../model/devices.ts";
import type { PodRef } from "../../model/forms.ts";
import type { Device } from "../../model/machine.ts";
import type { MemoryDecision, MemoryTable } from "../../model/memory.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { stackBar } from "../draw/bars.ts";
import { type Cell, cellGrid, ownerMark } from "../draw/cell-grid.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import type { ListView } from "./lists.ts";
import {
  type DecidedSnapshot,
  folded,
  managedNotes,
  NOT_KNOWN,
  notKnown,
  podName,
  reportedCpus,
  scrolling,
  undecided,
} from "./view.ts";

const LEGEND = [
  ["c4", "reserved for the system"],
  ["c0", "held by containers"],
  ["free", "free"],
] as const;

/** The memory of each NUMA node: reserved for the system, held by containers, free. */
export function memorySection(known: DecidedSnapshot, lists: ListView): Html {
  const { memory: answer } = known.decided;
  if (!answer.ok) return undecided("memory", "NUMA memory", answer.error);
  const { decision } = answer.value;
  const rows = decision.numaNodes.flatMap(({ id, group, memory }) =>
    Object.entries(memory)
      .filter(([, { total }]) => total > 0)
      .map(([resource, table]) => rowOf(id, group, resource, table)),
  );
  const isOff = decision.policy === "None";
  return folded(
    "memory",
    "NUMA memory",
    html`<p>memoryManagerPolicy ${decision.policy}${isOff ? ": memory is taken from any NUMA node" : ""}.</p>${managedNotes(decision, reportedCpus(known))}
${
  rows.length === 0
    ? notKnown("Not known: how much memory each NUMA node has", ["machine.numaNodes"])
    : html`<div class="card bars">${rows}<ul class="legend">${LEGEND.map(([tone, words]) => html`<li class="${tone}">${words}</li>`)}</ul></div>`
}
${isOff ? "" : holders(decision, lists)}`,
    lists.asked !== null,
  );
}

function rowOf(id: number, group: readonly number[], resource: string, table: MemoryTable): Html {
  const { total, systemReserved, reserved, free } = table;
  const sizes = [systemReserved, reserved, free];
  const parts = LEGEND.map(([, words], i) => `${humanBytes(sizes[i] as number)} ${words}`);
  const segments = LEGEND.map(([tone], i) => ({ size: sizes[i] as number, tone, words: parts[i] as string }));
  const name = `NUMA node ${id}${resource === "memory" ? "" : `, ${resource}`}`;
  const also = group.length > 1 ? `, in a group with ${group.filter((other) => other !== id).join(" and ")}` : "";
  return html`<div class="bar-row"><div><strong>${name}</strong> <span>${parts.join(", ")}<span class="soft">; ${humanBytes(total)} in all${also}</span></span></div>${stackBar(segments, `${name}: ${parts.join(", ")}`)}</div>`;
}

function holders({ assignments }: MemoryDecision, lists: ListView): Html {
  const rows = assignments.flatMap(({ pod, container, blocks }) =>
    blocks.map(
      ({ resource, size, numaNodes }) =>
        html`<tr><td>${podName(pod)}</td><td>${container}</td><td>${resource}</td><td class="num">${humanBytes(size)}</td><td>${numaNodes.join("+")}</td></tr>`,
    ),
  );
  if (rows.length === 0) return html`<p class="soft">No container holds memory of one NUMA node.</p>`;
  const { shown, note } = lists.cut("memory", rows);
  return html`${scrolling(
    "Table of memory",
    html`<table><thead><tr><th>Held by</th><th>Container</th><th>Resource</th><th class="num">Size</th><th>NUMA</th></tr></thead><tbody>${shown}</tbody></table>`,
  )}${note}`;
}

interface Holder {
  readonly pod: PodRef;
  readonly container: string;
}
/** `resource id` -> its holder; each pod has one mark. */
interface Holders {
  readonly of: ReadonlyMap<string, Holder>;
  readonly marks: ReadonlyMap<string, ReturnType<typeof ownerMark>>;
}
const ACROSS = 8;
/** The number of cells per picture; pictures are placed side by side if there is room. */
const BLOCK = 8 * ACROSS;
/** Cells of one card, and of all cards of the node's page together. */
const MAX_CELLS = 512;
const MAX_CELLS_IN_ALL = 1536;

/** Devices by resource and NUMA node: the holder and the health of each. */
export function devicesSection(known: DecidedSnapshot, lists: ListView): Html {
  const { snapshot, decided } = known;
  const { devices: answer } = decided;
  if (!answer.ok) return undecided("devices", "Devices", answer.error);
  const { decision } = answer.value;
  const devices = snapshot.devices ?? [];
  if (decision.resources.length === 0 && devices.length === 0) {
    const lacks = notKnown("No device plugin has reported a device", ["devices", "devicePlugins", "assignments"]);
    const notes = html`${managedNotes(decision, reportedCpus(known))}${lacks}`;
    const isNoted = decision.startErrors.length + decision.warnings.length > 0;
    return folded("devices", "Devices", notes, isNoted, NOT_KNOWN);
  }
  const holders = holdersOf(decision);
  const broken = decision.checkpointError;
  const mapped = decision.resources.filter(({ resource }) => lists.isAsked("device-map", resource));
  const cards = mapped.length > 0 ? { shown: mapped, note: "" } : lists.cut("resources", decision.resources);
  const few = Math.min(MAX_CELLS, Math.floor(MAX_CELLS_IN_ALL / Math.max(1, cards.shown.length)));
  return folded(
    "devices",
    "Devices by owner and health",
    html`${managedNotes(decision, reportedCpus(known))}${broken === null ? "" : html`<p class="note bad">The checkpoint is ignored: ${broken}</p>`}
<div class="device-cards">${cards.shown.map((state) => resourceCard(state, devices, { holders, lists, few }))}</div>${cards.note}
${holdersTable(decision, holders, lists)}`,
    lists.asked !== null,
  );
}

function holdersOf({ assignments }: DevicesDecision): Holders {
  const of = new Map<string, Holder>();
  const marks = new Map<string, ReturnType<typeof ownerMark>>();
  for (const { pod, container, devices } of assignments) {
    if (!marks.has(pod.uid)) marks.set(pod.uid, ownerMark(marks.size));
    for (const [resource, ids] of Object.entries(devices))
      for (const id of ids) of.set(`${resource} ${id}`, { pod, container });
  }
  return { of, marks };
}

interface Drawing {
  readonly holders: Holders;
  readonly lists: ListView;
  /** Cells of a card. */
  readonly few: number;
}
function resourceCard(state: DeviceResourceState, devices: readonly Device[], { holders, lists, few }: Drawing): Html {
  const { resource, plugin, capacity, allocatable, allocated } = state;
  const own = devices
    .filter((device) => device.resource === resource)
    .toSorted((a, b) => inOrder(numaOf(a), numaOf(b)));
  const sick = own.filter(isSick).length;
  // an unhealthy device may be held: subtracting held from allocatable would count it twice
  const free =
    own.length === 0
      ? Math.max(0, allocatable - allocated)
      : own.filter((device) => !isSick(device) && !holders.of.has(`${resource} ${device.id}`)).length;
  const tone = plugin === "registered" ? "good" : plugin === "removed" ? "bad" : "warn";
  const cells = lists.cut("device-map", own, resource, few);
  const drawn = Map.groupBy(cells.shown, numaOf);
  const groups = [...Map.groupBy(own, numaOf)].map(([numa, { length }]) => ({
    numa,
    length,
    cells: drawn.get(numa) ?? [],
  }));
  return html`<div class="card"><h3>${resource} <span class="tag ${tone}">${plugin}</span></h3>
<p>${allocated} held, ${free} free of ${many(capacity, "device")}${sick === 0 ? "" : html`, <strong class="bad-text">${sick} not healthy</strong>`}</p>
${
  own.length === 0
    ? html`<p class="small soft">Its devices are not in the snapshot: <code>devices</code>.</p>`
    : html`<div class="numas">${groups.map((group) => groupOf(resource, group, holders))}</div>`
}
${cells.note}</div>`;
}

const isSick = ({ health }: Device): boolean => health !== undefined && health !== "Healthy";
const numaOf = ({ numaNodes }: Device): string =>
  numaNodes === undefined || numaNodes.length === 0 ? "no NUMA node" : `NUMA node ${numaNodes.join("+")}`;

/** Sorts 10 after 9. */
const inOrder = new Intl.Collator("en", { numeric: true }).compare;

interface Group {
  readonly numa: string;
  /** The number of all devices of the resource. */
  readonly length: number;
  /** The devices that are drawn. */
  readonly cells: readonly Device[];
}
function groupOf(resource: string, { numa, length, cells }: Group, { of, marks }: Holders): Html {
  const cell = (device: Device): Cell => {
    const { id } = device;
    const holder = of.get(`${resource} ${id}`);
    const own = holder === undefined ? undefined : marks.get(holder.pod.uid);
    const health = isSick(device) ? `, ${device.health}` : "";
    const who = holder === undefined ? "free" : `held by ${podName(holder.pod)} ${holder.container}`;
    const tone = isSick(device) ? "sick" : (own?.tone ?? "shared");
    return {
      name: tail(id),
      mark: `${own?.mark ?? ""}${isSick(device) ? "×" : ""}` || "·",
      tone,
      words: `${id}: ${who}${health}`,
    };
  };
  const all = many(length, "device");
  const words = cells.length === length ? all : `${cells.length === 0 ? "none" : cells.length} of ${all} drawn here`;
  const blocks = Array.from({ length: Math.ceil(cells.length / BLOCK) }, (_, i) =>
    cells.slice(i * BLOCK, (i + 1) * BLOCK),
  );
  const grids = blocks.map((block) =>
    cellGrid(
      block.map((device) => [cell(device)]),
      `${resource} of ${numa}: ${many(block.length, "device")}`,
      ACROSS,
    ),
  );
  return html`<figure><figcaption>${numa} <span class="soft">${words}</span></figcaption><div class="blocks">${grids}</div></figure>`;
}
/** The part of an id that fits into a cell: the end, where ids of one plugin differ. */
const tail = (id: string): string => (id.length <= 5 ? id : `…${id.slice(-4)}`);

function holdersTable({ assignments }: DevicesDecision, { marks }: Holders, lists: ListView): Html {
  const rows = assignments.flatMap(({ pod, container, devices, pending }) =>
    Object.entries(devices).map(
      ([resource, ids]) =>
        html`<tr><td>${marks.get(pod.uid)?.mark ?? ""}</td><td>${podName(pod)}</td><td>${container}</td><td>${resource}</td><td>${ids.join(" ")}${pending.includes(resource) ? " (its plugin has not answered)" : ""}</td></tr>`,
    ),
  );
  if (rows.length === 0) return html`<p class="soft">No container holds a device.</p>`;
  const { shown, note } = lists.cut("devices", rows);
  return html`${scrolling(
    "Table of devices",
    html`<table><thead><tr><th>Mark</th><th>Held by</th><th>Container</th><th>Resource</th><th>Devices</th></tr></thead><tbody>${shown}</tbody></table>`,
  )}${note}`;
}
