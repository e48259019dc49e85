import type { Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import { type Exchange, param } from "../http/route.ts";
import { getWhyAnswer } from "../http/why.ts";
import type { Problem } from "../service/problem.ts";
import { colorPaint, fitLines } from "../text/style.ts";
import { podExplanationText } from "../text/why.ts";
import { html, nodeName } from "./html.ts";
import { page } from "./page.ts";
import { textForBoth } from "./record-part.ts";

/** The width in columns for which an explanation's tables are laid out. */
const COLUMNS = 120;

/** GET /nodes/{node}/pods/{namespace}/{name}: why a pod is in its state, from the history. */
export async function getWhyPage(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const answer = await getWhyAnswer(exchange);
  if (!answer.ok) return answer;
  const { story } = answer.value;
  const node = param(exchange, "node");
  const pod = `${param(exchange, "namespace")}/${param(exchange, "name")}`;
  const { origin, pathname } = new URL(exchange.c.req.url);
  return page(
    `Why ${pod} is as it is`,
    html`<p class="soft">By what the history holds of ${nodeName(node)}. Documents of a cluster tell more: <code>kubectl get pods,nodes,events -A -o json | nodewise why ${pod}</code></p>
${story === null ? "" : textForBoth((columns) => fitLines(podExplanationText(story, { columns, paint: colorPaint }), columns), COLUMNS)}
<p class="small"><a href="/v1${pathname}/why">JSON</a> · <a href="/nodes/${encodeURIComponent(node)}/decisions?pod=${encodeURIComponent(pod)}">the decisions about it</a> · in a terminal: <code>nodewise why ${pod} --api ${origin}</code></p>`,
    { live: node },
  );
}
