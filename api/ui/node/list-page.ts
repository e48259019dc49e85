import { html } from "hono/html";
import type { Result } from "../../model/result.ts";
import { type Problem, problem } from "../../routes/problem.ts";
import type { Exchange, Reply } from "../../routes/route.ts";
import { type Html, page } from "../page.ts";
import { cgroupsSection } from "./cgroups.ts";
import { cpusSection } from "./cpus.ts";
import type { Known } from "./decided.ts";
import { devicesSection } from "./devices.ts";
import { evictionSection } from "./eviction.ts";
import { imagesSection } from "./images.ts";
import { type AskedList, LISTS, Lists } from "./lists.ts";
import { memorySection } from "./memory.ts";
import type { NodeView } from "./view.ts";
import { withWholeRankings } from "./whole-ranking.ts";

/** The part of a node's page that a list is in, with that page of the list. Errors: the node has no such list now; the history's. */
export async function listPage({ ports }: Exchange, view: NodeView, asked: AskedList): Promise<Result<Reply, Problem>> {
  const { name } = view.row;
  const lists = new Lists(name, asked);
  const { section, title } = LISTS[asked.name];
  const whole = asked.name === "ranking" ? await withWholeRankings(ports.store, view) : null;
  if (whole !== null && !whole.ok) return whole;
  const content = sectionOf(section, whole?.value ?? view, lists);
  if (!lists.found) {
    const of = asked.of === "" ? "" : ` of \`${asked.of.slice(0, 100)}\``;
    return problem("not_found", `node \`${name}\` has no list \`${asked.name}\`${of} now`, {
      advice: "the page of the node links to the lists that it has",
    });
  }
  const node = `/nodes/${encodeURIComponent(name)}`;
  const of = asked.of === "" ? "" : ` of ${asked.of}`;
  return page(
    `${title}${of}, node ${name}`,
    html`<p>Of node <a href="${node}#${section}">${name}</a>, as its newest snapshot and passes have it.</p>
${content}`,
    { live: name },
  );
}

function sectionOf(section: string, view: NodeView, lists: Lists): Html | "" {
  if (section === "eviction") return evictionSection(view, lists);
  const { seen, reports, imageGc } = view;
  return seen.state === "known" ? fromSnapshot(section, seen.known, { reports, imageGc, lists }) : "";
}

type Beside = Pick<NodeView, "reports" | "imageGc"> & { readonly lists: Lists };
function fromSnapshot(section: string, known: Known, { reports, imageGc, lists }: Beside): Html | "" {
  if (section === "cgroups") return cgroupsSection(known, reports, lists);
  if (section === "cpus") return cpusSection(known, lists);
  if (section === "memory") return memorySection(known, lists);
  if (section === "devices") return devicesSection(known, lists);
  return imagesSection(known, imageGc, lists);
}
