import type { Store } from "../../db/store.ts";
import type { PodsNode } from "./pods-node.ts";

/** The faults of a history that must have each admission once, with one report at most of each time that it was made. */
export async function misrecorded({ asked, unheard }: PodsNode, store: Store): Promise<string[]> {
  const found: string[] = [];
  const kept = new Map<string, number>();
  for (let pageToken: string | null = ""; pageToken !== null; ) {
    const from = pageToken === "" ? {} : { pageToken };
    const page = await store.listDecisions({ kind: "admission", limit: 500, ...from });
    if (!page.ok) throw new Error(page.error.message);
    for (const { id } of page.value.items) {
      const results = await store.listResults(id);
      kept.set(id, results.ok ? results.value.length : -1);
    }
    pageToken = page.value.nextPageToken;
  }
  const byApi = asked.filter(({ answer }) => answer.decidedBy === "api");
  const here = asked.filter(({ answer }) => answer.decidedBy === "here");
  for (const { uid, answer } of byApi) if (!kept.has(answer.id ?? "")) found.push(`${answer.id} of ${uid} is not kept`);
  for (const [id, results] of kept) {
    const times = byApi.filter(({ answer }) => answer.id === id).length;
    if (results > Math.max(1, times)) found.push(`${id} was made ${times} times and has ${results} results`);
  }
  const certain = new Set(here.filter(({ isKept }) => isKept).map(({ key }) => key)).size;
  const ofApi = new Set(byApi.map(({ answer }) => answer.id)).size;
  const most = here.length + unheard.filter((kind) => kind === "admission").length;
  if (kept.size < ofApi + certain || kept.size > ofApi + most)
    found.push(`${kept.size} admissions are kept of ${ofApi} by the API and ${certain} to ${most} here`);
  const untold = asked.filter(({ reports, life }) => reports !== 1 && !life.isOver);
  return [...found, ...untold.map(({ uid, reports }) => `an admission of ${uid} has ${reports} reports`)];
}
