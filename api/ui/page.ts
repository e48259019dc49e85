import { html, raw } from "hono/html";
import { ok, type Result } from "../model/result.ts";
import type { Reply } from "../routes/route.ts";

export type Html = ReturnType<typeof html>;

/** Own style sheet, no script, no frame, nothing from elsewhere. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** A whole page around its content. Everything in a template is escaped but other templates. */
export async function page(title: string, content: Html | Promise<Html>): Promise<Result<Reply, never>> {
  const text = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Nodewise</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><strong>Nodewise</strong><span class="soft">the kubelet’s node decisions, explained and recorded</span>
<nav><a href="/">Nodes</a><a href="/docs">API</a><a href="/openapi.json">OpenAPI</a><a href="/metrics">Metrics</a></nav></header>
<main>
<h1>${title}</h1>
${await content}
</main>
</body>
</html>
`;
  return ok({
    status: 200,
    type: "text/html; charset=utf-8",
    body: String(text),
    headers: { "content-security-policy": POLICY, "x-frame-options": "DENY" },
  });
}

/** Templates beside each other. */
export const all = async (parts: readonly (Html | Promise<Html>)[]): Promise<Html> =>
  raw((await Promise.all(parts)).map(String).join(""));

/** Prose whose `names` stand in back-ticks. */
export const prose = (text: string): Promise<Html> =>
  all(text.split("`").map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`)));
