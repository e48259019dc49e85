import { countCpus, formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import type { CpuAssignment, CpusDecision } from "../../model/cpus.ts";
import { type Machine, numaText } from "../../model/machine.ts";
import { many } from "../../text/sentences/words.ts";
import { type Cell, cellGrid, ownerMark } from "../draw/cell-grid.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import type { ListView } from "./lists.ts";
import { type DecidedSnapshot, folded, managedNotes, notKnown, podName, scrolling, undecided } from "./view.ts";

type Cpu = NonNullable<Machine["cpus"]>[number];
interface Owner {
  readonly mark: string;
  readonly tone: string;
  readonly words: string;
}
const RESERVED: Owner = { mark: "R", tone: "reserved", words: "reserved for the system" };
const SHARED: Owner = { mark: "·", tone: "shared", words: "shared pool" };
const ANY: Owner = { mark: "·", tone: "shared", words: "any container may run on it" };
const NOBODY: Owner = { mark: "–", tone: "nobody", words: "in neither pool" };

/** The owner of each CPU: a map by socket, NUMA node, core and thread, and the same as a table. */
export function cpusSection({ snapshot, decided }: DecidedSnapshot, lists: ListView): Html {
  const { cpus: answer } = decided;
  if (!answer.ok) return undecided("cpus", "CPUs", answer.error);
  const { decision } = answer.value;
  const cpus = snapshot.machine?.cpus ?? [];
  const owners = ownersOf(decision);
  return folded(
    "cpus",
    "CPUs by owner",
    html`<p>${captionOf(decision, cpus)}</p>${managedNotes(decision)}
${cpus.length === 0 ? notKnown("Not known: which CPUs the machine has", ["machine.cpus"]) : mapOf(cpus, owners, lists)}
${tableOf(decision, cpus, owners, lists)}`,
    lists.asked !== null,
  );
}

function captionOf({ policy, options, reserved, sharedPool }: CpusDecision, cpus: readonly Cpu[]): string {
  const all = cpus.length === 0 ? "" : `${many(cpus.length, "CPU")}; `;
  if (policy === "none") return `${all}cpuManagerPolicy none: every container may run on every CPU.`;
  const given = Object.entries(options).map(([name, value]) => `${name}=${value}`);
  const rules = given.length === 0 ? "" : ` with ${given.join(", ")}`;
  const pool = sharedPool === "" ? "empty" : `${sharedPool} (${many(countCpus(sharedPool) ?? 0, "CPU")})`;
  return `${all}cpuManagerPolicy static${rules}: reserved ${reserved || "none"}, shared pool ${pool}.`;
}

interface Owners {
  readonly of: (cpu: number) => Owner;
  /** The owners in the order of the assignments; a pod has one mark. */
  readonly byPod: ReadonlyMap<string, Owner>;
}
function ownersOf({ policy, assignments, reserved, sharedPool }: CpusDecision): Owners {
  const byPod = new Map<string, Owner>();
  const byCpu = new Map<number, Owner>();
  for (const { pod, container, cpus } of assignments) {
    const known = byPod.get(pod.uid) ?? { ...ownerMark(byPod.size), words: podName(pod) };
    byPod.set(pod.uid, known);
    for (const cpu of parseCpuSet(cpus) ?? []) byCpu.set(cpu, { ...known, words: `${podName(pod)} ${container}` });
  }
  const kept = new Set(parseCpuSet(reserved));
  const shared = new Set(parseCpuSet(sharedPool));
  const rest = (cpu: number): Owner =>
    policy === "none" ? ANY : kept.has(cpu) ? RESERVED : shared.has(cpu) ? SHARED : NOBODY;
  return { of: (cpu) => byCpu.get(cpu) ?? rest(cpu), byPod };
}

/** Sorts threads of a core next to each other. */
const inPlace = (a: Cpu, b: Cpu): number => a.socket - b.socket || a.numa - b.numa || a.core - b.core || a.cpu - b.cpu;

function mapOf(all: readonly Cpu[], owners: Owners, lists: ListView): Html {
  const { shown: cpus, note } = lists.cut("cpu-map", all.toSorted(inPlace));
  const sockets = [...Map.groupBy(cpus, ({ socket }) => socket)].sort(([a], [b]) => a - b);
  const used = new Map(cpus.map(({ cpu }) => owners.of(cpu)).map((owner) => [owner.tone + owner.mark, owner]));
  const common = [RESERVED, SHARED, ANY, NOBODY].filter((owner) => used.get(owner.tone + owner.mark) === owner);
  const legend = [...owners.byPod.values()].slice(0, MAX_LEGEND).concat(common);
  const drawn = sockets.map(([socket, own]) => {
    const nodes = [...Map.groupBy(own, ({ numa }) => numa)].sort(([a], [b]) => a - b);
    return html`<div class="socket"><h3>Socket ${socket}</h3><div class="numas">${nodes.map(([numa, group]) => nodeOf(numa, group, owners))}</div></div>`;
  });
  return html`<div class="card map"><div class="sockets">${drawn}</div>
<ul class="legend marks">${legend.map(({ mark, tone, words }) => html`<li class="${tone}"><b>${mark}</b> ${words}</li>`)}</ul>
<p class="small soft">A column is a core, its threads below each other.</p></div>${note}`;
}
const MAX_LEGEND = 16;

function nodeOf(numa: number, group: readonly Cpu[], owners: Owners): Html {
  const cellOf = ({ cpu, core }: Cpu): Cell => {
    const { mark, tone, words } = owners.of(cpu);
    return { name: `${cpu}`, mark, tone, words: `CPU ${cpu}, core ${core}: ${words}` };
  };
  const cores = [...Map.groupBy(group, ({ core }) => core).values()].map((threads) =>
    threads.toSorted((a, b) => a.cpu - b.cpu).map(cellOf),
  );
  const list = formatCpuSet(group.map(({ cpu }) => cpu).sort((a, b) => a - b));
  return html`<figure><figcaption>NUMA node ${numa} <span class="soft">CPUs ${list}</span></figcaption>${cellGrid(cores, `CPUs of NUMA node ${numa}: the table below shows which containers have them`)}</figure>`;
}

function tableOf(decision: CpusDecision, cpus: readonly Cpu[], owners: Owners, lists: ListView): Html {
  const { assignments, reserved, sharedPool, policy } = decision;
  if (policy === "none") return html``;
  const line = (mark: string, who: string, container: string, list: string): Html =>
    html`<tr><td>${mark}</td><td>${who}</td><td>${container}</td><td>${list || "none"}</td><td class="num">${countCpus(list) ?? ""}</td><td>${numaText(list, cpus)}</td></tr>`;
  const { shown, note } = lists.cut("cpus", assignments);
  const own = shown.map(({ pod, container, cpus: list }: CpuAssignment) =>
    line(owners.byPod.get(pod.uid)?.mark ?? "", podName(pod), container, list),
  );
  return html`${scrolling(
    "Table of CPUs",
    html`<table><thead><tr><th>Mark</th><th>Owner</th><th>Container</th><th>CPUs</th><th class="num">Count</th><th>NUMA</th></tr></thead>
<tbody>${own}${line(RESERVED.mark, RESERVED.words, "", reserved)}${line(SHARED.mark, SHARED.words, "", sharedPool)}</tbody></table>`,
  )}${note}${changes(decision, lists)}`;
}

function changes({ reconcile }: CpusDecision, lists: ListView): Html | "" {
  if (reconcile.length === 0) return "";
  const { shown, note } = lists.cut("cpu-changes", reconcile);
  const lines = shown.map(
    ({ pod, container, from, cpus }) => html`<li>${podName(pod)} ${container}: ${from ?? "not known"} → ${cpus}</li>`,
  );
  const open = lists.isAsked("cpu-changes") ? html` open` : "";
  return html`<details id="cpus-changes"${open}><summary>Cpusets to change: ${reconcile.length}</summary><ul>${lines}</ul>${note}</details>`;
}
