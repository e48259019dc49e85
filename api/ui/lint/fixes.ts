import { html } from "hono/html";
import type { LintFinding } from "../../decide/lint/lint.ts";
import { isObject } from "../../replay/change.ts";
import type { Html } from "../page.ts";
import { whatIfLink } from "../what-if/link.ts";

/** Browsers and proxies take longer ones, but nobody shares them. */
const LONGEST_LINK = 2000;

/** Where a patch can be tried: on the whole history, filled in, and on the newest snapshot of a node, which is answered at once. */
export function fixLinks(fix: unknown, node: string): Html {
  const change = JSON.stringify(fix);
  const of = node === "" ? {} : { node };
  const query = new URLSearchParams({ ...of, as: "patch", change }).toString();
  const replay =
    query.length > LONGEST_LINK
      ? html`<span class="soft">Too long for a link: copy it into <a href="/replay">replay</a>.</span>`
      : html`<a href="/replay?${query}">Replay the history with it</a>`;
  const whatIf = node === "" ? null : whatIfLink({ node, as: "patch", change });
  return whatIf === null ? replay : html`<a href="${whatIf}">What if ${node} had it</a> ${replay}`;
}

/** All patches as one, where there is more than one. */
export function allFixes(findings: readonly LintFinding[], node: string): Html | "" {
  const fixes = new Map<string, unknown>(
    findings.flatMap(({ fix }) => (fix === null ? [] : [[JSON.stringify(fix), fix]])),
  );
  if (fixes.size < 2) return "";
  const all = [...fixes.values()].reduce<unknown>(joined, {});
  return html`<h3 id="all">All patches together</h3>
<div class="card"><div class="fix"><pre tabindex="0" data-copy="all patches">${JSON.stringify(all, null, 2)}</pre></div><div class="try small">${fixLinks(all, node)}</div></div>`;
}

/** One merge patch that does what both do; a null stays, since it takes a field away. */
function joined(first: unknown, second: unknown): unknown {
  if (!isObject(first) || !isObject(second)) return second;
  const more = Object.entries(second).map(([name, value]) => [
    name,
    Object.hasOwn(first, name) ? joined(first[name], value) : value,
  ]);
  return { ...first, ...Object.fromEntries(more) };
}
