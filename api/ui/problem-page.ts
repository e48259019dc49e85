import { html } from "hono/html";
import type { Result } from "../model/result.ts";
import { adviceOf, type Problem, statusOf, titleOf } from "../routes/problem.ts";
import type { Reply } from "../routes/route.ts";
import { all, type Html, page, prose } from "./page.ts";

/** What a browser shows of a problem: the same as the JSON says. */
export function problemPage(problem: Problem, requestId: string): Promise<Result<Reply, never>> {
  const title = titleOf(problem);
  return page(
    `${title.slice(0, 1).toUpperCase()}${title.slice(1)}`,
    html`<p>${prose(problem.detail)}</p>
${near(problem)}${issues(problem)}
<p class="soft">${prose(adviceOf(problem))}</p>
<p class="soft small">Code <a href="/docs#${problem.code}"><code>${problem.code}</code></a>, status ${statusOf(problem)}, request <code>${requestId}</code>.</p>`,
    { status: statusOf(problem) },
  );
}

function near({ code, near: names = [] }: Problem): Html | Promise<Html> | "" {
  if (names.length === 0 || code !== "unknown_node") return "";
  const links = names.map((name) => html`<li><a href="/nodes/${encodeURIComponent(name)}">${name}</a></li>`);
  return html`<p>Did you mean</p><ul>${all(links)}</ul>`;
}

function issues({ issues: list = [] }: Problem): Html | Promise<Html> | "" {
  if (list.length < 2) return "";
  return html`<ul>${all(list.map(({ path, message }) => html`<li><code>${path}</code>: ${message}</li>`))}</ul>`;
}
