import { html } from "hono/html";
import { PARTS } from "../../inputs/parts.ts";
import { all, type Html } from "../page.ts";

/** What a decision could not do without, each with what holds it: `stats.node.fs`, the kubelet's /stats/summary. */
export function needsList(needs: readonly string[]): Html | Promise<Html> | "" {
  if (needs.length === 0) return "";
  return html`<ul class="wi-needs">${all(needs.map((path) => html`<li><code>${path}</code>${heldBy(path)}</li>`))}</ul>`;
}

function heldBy(path: string): string {
  if (path === "runtime") return ": crictl images, crictl ps -a and crictl pods, each with -o json";
  const part = PARTS.find((one) => isBelow(path, one.path.join(".")));
  return part === undefined ? "" : `: ${part.what}`;
}
const isBelow = (path: string, prefix: string): boolean =>
  path === prefix || path.startsWith(`${prefix}.`) || path.startsWith(`${prefix}[`);
