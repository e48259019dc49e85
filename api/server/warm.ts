import type { Hono } from "hono";
import { TRUSTED } from "../routes/serve.ts";

const FIRST = ["/", "/what-if", "/replay", "/lint", "/docs"];
/** Pages of one thing: the first that the others link to stands for all. */
const OF_ONE = [
  /href="(\/nodes\/[^"?/#]+)"/,
  /href="(\/nodes\/[^"?/#]+\/decisions)[^"]*"/,
  /href="(\/decisions\/[^"?/#]+)"/,
];

/**
 * Renders each kind of page once, one after the other with room for requests between them, so that the first visitor does not
 * wait for code that has never run. Ends early when `closing` says so; what a page answers is of no interest here.
 */
export async function warm(app: Pick<Hono, "fetch">, closing: AbortSignal): Promise<void> {
  const seen = new Set<string>();
  const queue = [...FIRST];
  for (let path = queue.shift(); path !== undefined && !closing.aborted; path = queue.shift()) {
    seen.add(path);
    const request = new Request(`http://localhost${path}`, { headers: { accept: "text/html" } });
    const text = await (await app.fetch(request, { [TRUSTED]: true })).text();
    for (const kind of OF_ONE) {
      if ([...seen, ...queue].some((known) => kind.test(`href="${known}"`))) continue;
      const linked = kind.exec(text)?.[1];
      if (linked !== undefined) queue.push(linked.replaceAll("&amp;", "&"));
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
