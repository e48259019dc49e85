import { ok, type Result } from "../base/result.ts";
import type { AssetName, Reply } from "../dependencies.ts";
import { adviceOf, statusOf, titleOf } from "../http/problem.ts";
import { SIGNED_IN } from "../http/respond.ts";
import type { Problem } from "../service/problem.ts";
import { type Html, html, raw, titled } from "./html.ts";

export type { Html };

/** Only own style sheets and scripts, no frames, nothing inline, nothing from other hosts. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** The links in every page's head line. */
const PLACES = [
  ["/", "Nodes"],
  ["/decisions", "Decisions"],
  ["/what-if", "What if"],
  ["/replay", "Replay"],
  ["/lint", "Lint"],
  ["/upgrade", "Upgrade"],
  ["/agreement", "Agreement"],
  ["/docs", "API"],
] as const;
type HeadLink = (typeof PLACES)[number][0];

interface PageOptions {
  /** The link in the header that is the current page. */
  readonly place?: HeadLink;
  readonly status?: number;
  readonly headers?: Reply["headers"];
  /** Assets beside the style sheet and `live.js`, which every page has; `page.js` comes with them. */
  readonly assets?: readonly AssetName[];
  /** The page changes when something is decided: about this node, or (empty) about any. Absent: it stays as it is. */
  readonly live?: string;
}

const SIGN_OUT = raw(
  `${SIGNED_IN[0]}<form class="sign-out" method="post" action="/sign-out"><button>Sign out</button></form>${SIGNED_IN[1]}`,
);

/** A whole page around its content. Values in a template are escaped unless they are templates. */
export async function page(
  title: string,
  content: Html | Promise<Html>,
  { place, status = 200, headers = {}, assets = [], live }: PageOptions = {},
): Promise<Result<Reply, never>> {
  const styles = assets.filter((name) => name.endsWith(".css"));
  // scripts of packages are no modules, and come first
  const scripts = assets.filter((name) => name.endsWith(".js"));
  const modules = [...scripts.filter((name) => name !== "uplot.js"), "live.js"];
  const classic = scripts.filter((name) => name === "uplot.js");
  const text = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Nodewise</title>
<link rel="icon" href="data:,">
${all(["style.css", ...styles].map((name) => html`<link rel="stylesheet" href="/assets/${name}">`))}
${all(classic.map((name) => html`<script src="/assets/${name}" defer></script>`))}
${all(modules.map((name) => html`<script type="module" src="/assets/${name}"></script>`))}
</head>
<body${live === undefined ? "" : html` data-live-node="${live}"`}>
<a class="skip" href="#content">Skip to content</a>
<header><a class="brand" href="/">Nodewise</a><span class="soft">the kubelet’s node decisions, explained and recorded</span>
<nav aria-label="Pages">${all(PLACES.map(([path, name]) => html`<a href="${path}"${path === place ? raw(' aria-current="page"') : ""}>${name}</a>`))}${SIGN_OUT}</nav></header>
<main id="content">
<h1>${title}</h1>
${await content}
</main>
</body>
</html>
`;
  return ok({
    status,
    type: PAGE_TYPE,
    body: String(text),
    headers: { "content-security-policy": POLICY, "x-frame-options": "DENY", ...headers },
  });
}
const PAGE_TYPE = "text/html; charset=utf-8";

/** Joins templates. */
export const all = async (parts: readonly (Html | Promise<Html>)[]): Promise<Html> =>
  raw((await Promise.all(parts)).map(String).join(""));

/** Prose whose `names` are in back-ticks. */
export const prose = (text: string): Promise<Html> =>
  all(text.split("`").map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`)));

/** Advice for people, where that for programs does not help. */
const BY_HAND: Readonly<Record<string, string>> = {
  invalid_input: "go back, correct what is named here, and try again",
  invalid_query: "correct the address, or go back to the page that led here",
};
/** Shows a problem in a browser, with the content of the JSON form. */
export function problemPage(problem: Problem, requestId: string, path = "/"): Promise<Result<Reply, never>> {
  const title = titleOf(problem);
  return page(
    titled(title),
    html`<p>${prose(problem.detail)}</p>
${near(problem)}${issues(problem)}${otherQueries(problem, path)}${problem.code === "unauthorized" ? signInForm(path) : ""}
<p class="soft">${prose(BY_HAND[problem.code] ?? adviceOf(problem))}</p>
<p class="soft small">Code <a href="/docs#${problem.code}"><code>${problem.code}</code></a>, status ${statusOf(problem)}, request <code>${requestId}</code>.</p>`,
    { status: statusOf(problem) },
  );
}

/** `to`: the path that is opened then. */
export const signInForm = (to: string): Html => html`
<form class="row card" method="post" action="/sign-in" aria-label="Sign in">
<input type="hidden" name="to" value="${to}">
<div><label for="token">Token</label><input id="token" name="token" type="password" placeholder="nw_…" autocomplete="current-password" required autofocus></div>
<button class="main">Sign in</button>
</form>`;

function near({ code, near: names = [] }: Problem): Html | Promise<Html> | "" {
  if (names.length === 0 || code !== "unknown_node") return "";
  const links = names.map((name) => html`<li><a href="/nodes/${encodeURIComponent(name)}">${name}</a></li>`);
  return html`<p>Did you mean</p><ul class="names">${all(links)}</ul>`;
}

/** Links to the same page without the wrong parameter, or with the one that may have been meant. */
function otherQueries({ code, issues: list = [] }: Problem, path: string): Html | Promise<Html> | "" {
  const [base = "", search] = path.split("?", 2);
  if (code !== "invalid_query" || search === undefined) return "";
  const link = (name: string, value: string | undefined): Html => {
    const query = new URLSearchParams(search);
    if (value === undefined) query.delete(name);
    else query.set(name, value);
    const label = value === undefined ? html`without <code>${name}</code>` : html`with <code>${name}=${value}</code>`;
    return html`<li><a href="${query.size === 0 ? base : `${base}?${query}`}">The same page ${label}</a></li>`;
  };
  const links = list.flatMap(({ path: name, near: meant }) => [
    ...(meant === undefined ? [] : [link(name, meant)]),
    link(name, undefined),
  ]);
  return html`<ul class="names">${all(links)}</ul>`;
}

function issues({ issues: list = [] }: Problem): Html | Promise<Html> | "" {
  if (list.length < 2) return "";
  return html`<ul>${all(list.map(({ path, message }) => html`<li><code>${path}</code>: ${message}</li>`))}</ul>`;
}
