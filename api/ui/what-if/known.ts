import { html } from "hono/html";
import { podsOfNode } from "../../decide/cgroups/node-pods.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { all, type Html } from "../page.ts";

/** What is known of the node, and what gave it. */
export function knownOf(
  snapshot: Snapshot,
  files: readonly { readonly part: string; readonly name: string }[],
): Html | Promise<Html> {
  const { node, observedAt } = snapshot;
  const name = node?.metadata.name;
  const parts = partsOf(snapshot).map(
    ([what, text]) => html`<li class="wi-part"><strong>${what}</strong>${text === "" ? "" : ` ${text}`}</li>`,
  );
  const given = files
    .filter(({ name: file }) => file !== "the text")
    .map(({ part, name: file }) => html`<li>${file} <span class="soft">as ${part}</span></li>`);
  return html`<p class="wi-known">${name === undefined ? html`<strong>A node without a name</strong>` : html`<strong>${name}</strong>`}${observedAt === undefined ? "" : html` <span class="soft">as of <time datetime="${observedAt}">${observedAt}</time></span>`}</p>
<ul class="wi-parts">${all(parts)}</ul>
${given.length === 0 ? "" : html`<details class="small"><summary>Recognised</summary><ul>${all(given)}</ul></details>`}`;
}

type Told = readonly [what: string, text: string];
const counted = (what: string, list: readonly unknown[] | undefined): readonly Told[] =>
  list === undefined ? [] : [[what, String(list.length)]];

/** A whole cluster's list may be given, and decisions count those of the node. */
function podsTold(snapshot: Snapshot): readonly Told[] {
  if (snapshot.pods === undefined) return [];
  const here = podsOfNode(snapshot).length;
  const others = snapshot.pods.length - here;
  return [["pods", others === 0 ? `${here}` : `${here} of this node; ${others} of others do not count`]];
}

function partsOf(snapshot: Snapshot): readonly Told[] {
  const { kubeletConfiguration, stats, machine, runtime, devices, assignments, cgroup, node } = snapshot;
  return [
    ...(node === undefined ? [] : [["node", ""] as const]),
    ...podsTold(snapshot),
    ...(kubeletConfiguration === undefined ? [] : [["configuration", ""] as const]),
    ...(stats === undefined ? [] : [["stats", ""] as const]),
    ...(machine === undefined ? [] : [["CPUs", String(machine.cpus?.length ?? "?")] as const]),
    ...counted("images", runtime?.images),
    ...counted("containers", runtime?.containers),
    ...counted("sandboxes", runtime?.sandboxes),
    ...counted("image file systems", runtime?.imageFilesystems?.imageFilesystems),
    ...counted("devices", devices),
    ...Object.keys(assignments ?? {}).map((file) => [file, ""] as const),
    ...(cgroup === undefined ? [] : [["cgroup", `v${cgroup.version} ${cgroup.driver ?? ""}`] as const]),
  ];
}
