import { html } from "hono/html";
import type { MemoryDecision, MemoryTable } from "../../model/managers.ts";
import { humanBytes } from "../../text/size.ts";
import { stackBar } from "../draw/stack-bar.ts";
import type { Html } from "../page.ts";
import type { Known } from "./decided.ts";
import type { Lists } from "./lists.ts";
import { managedNotes, podName, toldOfCpus } from "./managed.ts";
import { notKnown, refusedText, scrolling, section } from "./section.ts";

const LEGEND = [
  ["c4", "reserved for the system"],
  ["c0", "held by containers"],
  ["free", "free"],
] as const;

/** The memory of each NUMA node: the system's, what containers hold, what is free. */
export function memorySection(known: Known, lists: Lists): Html {
  const { memory: answer } = known.decided;
  if (!answer.ok) return section("memory", "NUMA memory", refusedText(answer.error));
  const { decision } = answer.value;
  const rows = decision.numaNodes.flatMap(({ id, group, memory }) =>
    Object.entries(memory)
      .filter(([, { total }]) => total > 0)
      .map(([resource, table]) => rowOf(id, group, resource, table)),
  );
  const isOff = decision.policy === "None";
  return section(
    "memory",
    "NUMA memory",
    html`<p>memoryManagerPolicy ${decision.policy}${isOff ? ": memory is taken from any NUMA node" : ""}.</p>${managedNotes(decision, toldOfCpus(known))}
${
  rows.length === 0
    ? notKnown("Not known: how much memory each NUMA node has", ["machine.numaNodes"])
    : html`<div class="card bars">${rows}<ul class="legend">${LEGEND.map(([tone, words]) => html`<li class="${tone}">${words}</li>`)}</ul></div>`
}
${isOff ? "" : holders(decision, lists)}`,
  );
}

function rowOf(id: number, group: readonly number[], resource: string, table: MemoryTable): Html {
  const { total, systemReserved, reserved, free } = table;
  const sizes = [systemReserved, reserved, free];
  const told = LEGEND.map(([, words], i) => `${humanBytes(sizes[i] as number)} ${words}`);
  const segments = LEGEND.map(([tone], i) => ({ size: sizes[i] as number, tone, words: told[i] as string }));
  const name = `NUMA node ${id}${resource === "memory" ? "" : `, ${resource}`}`;
  const also = group.length > 1 ? `, in a group with ${group.filter((other) => other !== id).join(" and ")}` : "";
  return html`<div class="bar-row"><div><strong>${name}</strong> <span>${told.join(", ")}<span class="soft">; ${humanBytes(total)} in all${also}</span></span></div>${stackBar(segments, `${name}: ${told.join(", ")}`)}</div>`;
}

function holders({ assignments }: MemoryDecision, lists: Lists): Html {
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
