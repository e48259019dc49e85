import type { Store } from "../../../db/store.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Reply } from "../../dependencies.ts";
import type { Exchange } from "../../http/route.ts";
import type { EvictionDecision } from "../../model/eviction.ts";
import { historyProblem, type Problem, problem } from "../../service/problem.ts";
import { html } from "../html.ts";
import { type Html, page } from "../page.ts";
import { cgroupsSection } from "./cgroups.ts";
import { claimsSection } from "./claims.ts";
import { cpusSection } from "./cpus.ts";
import { devicesSection, memorySection } from "./devices.ts";
import { evictionSection } from "./eviction.ts";
import { imagesSection } from "./images.ts";
import { type AskedList, LISTS, ListView } from "./lists.ts";
import { podsSection } from "./pods.ts";
import { type DecidedSnapshot, decideOn, knowSnapshot, type NodeView } from "./view.ts";

/** The part of a node's page that a list is in, with that page of the list. Errors: the node has no such list now; the history's. */
export async function listPage({ deps }: Exchange, view: NodeView, asked: AskedList): Promise<Result<Reply, Problem>> {
  const { name } = view.row;
  const lists = new ListView(name, asked);
  const { section, title } = LISTS[asked.name];
  const isRanked = asked.name === "ranking" || asked.name === "pods";
  const whole = isRanked ? await withWholeRankings(deps.store, view) : null;
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

function sectionOf(section: string, view: NodeView, lists: ListView): Html | "" {
  if (section === "eviction") return evictionSection(view, lists);
  const { seen } = view;
  return seen.state === "known" ? fromSnapshot(section, seen.known, view, lists) : "";
}

function fromSnapshot(section: string, known: DecidedSnapshot, view: NodeView, lists: ListView): Html | "" {
  if (section === "pods") return podsSection(known, view, lists);
  if (section === "cgroups") return cgroupsSection(known, view.reports, lists);
  if (section === "cpus") return cpusSection(known, lists);
  if (section === "memory") return memorySection(known, lists);
  if (section === "devices") return devicesSection(known, lists);
  if (section === "claims") return claimsSection(known, lists);
  return imagesSection(known, view.imageGc, lists);
}

/**
 * The view with complete rankings of its eviction pass: a recorded pass has only the first pods of each, so the rankings are
 * computed again from the snapshot of the decision. If that is no longer stored, they stay as recorded.
 */
async function withWholeRankings(store: Store, view: NodeView): Promise<Result<NodeView, Problem>> {
  const { eviction, pass, seen } = view;
  const { newest } = eviction;
  if (newest === null) {
    const snapshot = seen.state === "known" ? seen.known.snapshot : null;
    return ok(snapshot === null ? view : { ...view, pass: pass && decideOn("eviction", snapshot, null, "full") });
  }
  const { snapshotId } = newest.head;
  if (snapshotId === null) return ok(view);
  const found = await store.getSnapshot(snapshotId);
  if (!found.ok) return historyProblem(found.error);
  const known = found.value === null ? null : knowSnapshot(store, found.value);
  if (known === null || !known.ok) return ok(view);
  const whole = decideOn("eviction", known.value.snapshot, null, "full");
  if (!whole.ok) return ok(view);
  const decision: EvictionDecision = { ...newest.decision, rankings: whole.value.decision.rankings };
  return ok({ ...view, eviction: { ...eviction, newest: { ...newest, decision } } });
}
