import { html } from "hono/html";
import type { DecisionHead, NodeRow } from "../../db/store.ts";
import type { Result } from "../model/result.ts";
import { historyProblem } from "../routes/history-problem.ts";
import type { Problem } from "../routes/problem.ts";
import { type Exchange, type Reply, timeText } from "../routes/route.ts";
import { all, type Html, page } from "./page.ts";

const LATEST = 25;

/** GET /: the nodes and their newest decisions. A node's token sees its own. */
export async function getHome({ ports, caller }: Exchange): Promise<Result<Reply, Problem>> {
  const nodes = await ports.store.listNodes();
  if (!nodes.ok) return historyProblem(nodes.error);
  const latest = await ports.store.listDecisions({
    limit: LATEST,
    ...(caller.node === null ? {} : { node: caller.node }),
  });
  if (!latest.ok) return historyProblem(latest.error);
  const shown = nodes.value.filter((row) => caller.node === null || row.name === caller.node);
  return page(
    "Nodes",
    html`${nodesTable(shown)}
<h2>Latest decisions</h2>
${decisionsTable(latest.value.items)}`,
  );
}

const NOTHING = html`<p>No node has posted a snapshot yet. On any machine with <code>kubectl</code>:</p>
<pre>kubectl get node NODE -o json &gt; node.json
kubectl get pods -A --field-selector spec.nodeName=NODE -o json &gt; pods.json
nodewise decide cgroups --node node.json --pods pods.json</pre>
<p>or post a snapshot to <code>/v1/decisions/cgroups</code>: <a href="/docs">the API</a> says how.</p>`;

function nodesTable(nodes: readonly NodeRow[]): Html | Promise<Html> {
  if (nodes.length === 0) return NOTHING;
  return html`<div class="scroll"><table>
<thead><tr><th>Node</th><th>Last seen</th><th>First seen</th><th>Snapshot</th><th>Sequence</th></tr></thead>
<tbody>${all(nodes.map(nodeRow))}</tbody></table></div>`;
}

const nodeRow = (row: NodeRow): Html | Promise<Html> => html`<tr>
<td><a href="/v1/nodes/${encodeURIComponent(row.name)}">${row.name}</a></td>
<td>${when(row.lastSeenMs)}</td><td>${when(row.firstSeenMs)}</td>
<td>${row.lastSnapshotId === null ? "–" : html`<a href="/v1/snapshots/${row.lastSnapshotId}"><code>${row.lastSnapshotId.slice(0, 12)}</code></a>`}</td>
<td class="num">${row.lastSequence ?? "–"}</td></tr>`;

function decisionsTable(decisions: readonly DecisionHead[]): Html | Promise<Html> {
  if (decisions.length === 0) return html`<p class="soft">None yet.</p>`;
  return html`<div class="scroll"><table>
<thead><tr><th>When</th><th>Node</th><th>Kind</th><th>Verdict</th><th>Decision</th></tr></thead>
<tbody>${all(decisions.map(decisionRow))}</tbody></table></div>`;
}

const decisionRow = (row: DecisionHead): Html | Promise<Html> => html`<tr>
<td>${when(row.decidedAtMs)}</td><td><a href="/v1/nodes/${encodeURIComponent(row.node)}/decisions">${row.node}</a></td>
<td>${row.kind}</td><td>${row.verdict}</td><td><a href="/v1/decisions/${row.id}"><code>${row.id.slice(0, 12)}</code></a></td></tr>`;

function when(ms: number): Html | Promise<Html> {
  const text = timeText(ms);
  return html`<time datetime="${text}">${text.replace("T", " ").replace(/\.\d+Z$/, " UTC")}</time>`;
}
