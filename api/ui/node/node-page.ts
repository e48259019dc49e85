import { html } from "hono/html";
import type { Result } from "../../model/result.ts";
import { findNode } from "../../routes/nodes.ts";
import type { Problem } from "../../routes/problem.ts";
import type { Exchange, Reply } from "../../routes/route.ts";
import { decisionsTable } from "../decisions-table.ts";
import { type Html, page, prose } from "../page.ts";
import { undrawnIn } from "../record-part.ts";
import { moment } from "../time.ts";
import { capacitySection } from "./capacity.ts";
import { cgroupsSection } from "./cgroups.ts";
import { cpusSection } from "./cpus.ts";
import type { Known } from "./decided.ts";
import { devicesSection } from "./devices.ts";
import { evictionSection } from "./eviction.ts";
import { headOf } from "./head.ts";
import { imagesSection } from "./images.ts";
import { listPage } from "./list-page.ts";
import { askedList, Lists } from "./lists.ts";
import { memorySection } from "./memory.ts";
import { probesSection } from "./probes.ts";
import { plural, section } from "./section.ts";
import { type NodeView, nodeView } from "./view.ts";

/** GET /nodes/{node}: all that is known of a node, drawn; with `list`, a page of one of its lists. */
export async function getNodePage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const asked = askedList(exchange);
  if (!asked.ok) return asked;
  const found = await findNode(exchange);
  if (!found.ok) return found;
  const { store, now } = exchange.ports;
  const view = await nodeView(store, found.value, now(), undrawnIn(exchange));
  if (!view.ok) return view;
  if (asked.value !== null) return listPage(exchange, view.value, asked.value);
  return page(found.value.name, contentOf(view.value), {
    assets: ["uplot.css", "uplot.js", "plots.js"],
    live: found.value.name,
  });
}

const PARTS = [
  ["capacity", "Capacity"],
  ["eviction", "Eviction"],
  ["cgroups", "Cgroups"],
  ["cpus", "CPUs"],
  ["memory", "NUMA memory"],
  ["devices", "Devices"],
  ["images", "Images"],
  ["probes", "Probes"],
  ["decisions", "Decisions"],
] as const;

function contentOf(view: NodeView): Html {
  const { seen } = view;
  const lists = new Lists(view.row.name);
  const known = seen.state === "known" ? seen.known : null;
  const parts = PARTS.filter(([id]) => known !== null || !FROM_SNAPSHOT.has(id));
  return html`${headOf(view)}
<nav class="parts" aria-label="On this page">${parts.map(([id, title]) => html`<a href="#${id}">${title}</a>`)}</nav>
${known === null ? noSnapshot(view) : html`${capacitySection(known)}`}
${evictionSection(view, lists)}
${known === null ? "" : fromSnapshot(known, view, lists)}
${probesSection(view)}
${newestSection(view)}`;
}
const FROM_SNAPSHOT: ReadonlySet<string> = new Set(["capacity", "cgroups", "cpus", "memory", "devices", "images"]);

/** So few that their map leaves room beside it. */
const FEW_CPUS = 32;
const fromSnapshot = (
  known: Known,
  view: NodeView,
  lists: Lists,
): Html => html`${cgroupsSection(known, view.reports, lists)}
<div class="${(known.snapshot.machine?.cpus ?? []).length > FEW_CPUS ? "" : "halves wide"}">${cpusSection(known, lists)}${memorySection(known, lists)}</div>
${devicesSection(known, lists)}
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
      const more = seen.issues.length > 1 ? `, and ${plural(seen.issues.length - 1, "more fault")}` : "";
      return html`The newest snapshot of this node (<a href="/v1/snapshots/${seen.row.id}"><code>${seen.row.id.slice(0, 12)}</code></a>, stored ${moment(seen.row.storedAtMs)}) cannot be read by this version: <code>${first?.path || "snapshot"}</code> ${first?.message}${more}.`;
    }
  }
}

const newestSection = ({ newest, row: { name } }: NodeView): Html =>
  section(
    "decisions",
    "Newest decisions",
    html`${decisionsTable(newest, { ofOneNode: true })}<p><a href="/nodes/${encodeURIComponent(name)}/decisions">All decisions of this node, by kind, verdict, pod and time</a></p>`,
  );
