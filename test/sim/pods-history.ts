import { seriesOf } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import type { PodsNode } from "./pods-node.ts";

/**
 * The errors in a history that must contain each admission once, with at most one report for each time that the
 * admission was made.
 */
export async function misrecorded({ asked, undelivered }: PodsNode, store: Store): Promise<string[]> {
  const found: string[] = [];
  const kept = new Map<string, { readonly results: number; readonly times: number }>();
  for (let pageToken: string | null = ""; pageToken !== null; ) {
    const from = pageToken === "" ? {} : { pageToken };
    const page = await store.listDecisions({ kind: "admission", limit: 500, ...from });
    if (!page.ok) throw new Error(page.error.message);
    for (const item of page.value.items) {
      const results = await store.listResults(item.id);
      const { times } = seriesOf(item);
      kept.set(item.id, { times, results: results.ok ? results.value.length : -1 });
    }
    pageToken = page.value.nextPageToken;
  }
  const byApi = asked.filter(({ answer }) => answer.decidedBy === "api");
  const here = asked.filter(({ answer }) => answer.decidedBy === "here");
  for (const { uid, answer } of byApi) if (!kept.has(answer.id ?? "")) found.push(`${answer.id} of ${uid} is not kept`);
  for (const [id, { results, times }] of kept)
    if (results > times) found.push(`${id} was made ${times} times and has ${results} results`);
  const made = Array.from(kept.values()).reduce((sum, { times }) => sum + times, 0);
  const certain = new Set(here.filter(({ isKept }) => isKept).map(({ key }) => key)).size;
  const ofApi = new Set(byApi.map(({ key }) => key)).size;
  const most = here.length + undelivered.filter((kind) => kind === "admission").length;
  if (made < ofApi + certain || made > ofApi + most)
    found.push(`${made} admissions are kept of ${ofApi} by the API and ${certain} to ${most} here`);
  const unreported = asked.filter(({ reports, life }) => reports !== 1 && !life.isOver);
  return [...found, ...unreported.map(({ uid, reports }) => `an admission of ${uid} has ${reports} reports`)];
}
