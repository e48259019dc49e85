import { perObject } from "../base/cache.ts";
import type { Fields } from "../base/own.ts";
import type { Result } from "../base/result.ts";
import type { Reply } from "../dependencies.ts";
import type { OpenApi } from "../http/openapi/contract.ts";
import type { OpenApiDocument } from "../http/openapi/document.ts";
import { PROBLEMS } from "../http/problem.ts";
import { breakable, html, titled } from "./html.ts";
import { all, type Html, page, prose } from "./page.ts";

interface Content {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Described {
  readonly summary: string;
  readonly description?: string;
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    in: string;
    name: string;
    description: string;
    required?: boolean;
    schema: Fields;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, { description: string }>>;
  readonly "x-scope"?: string;
}

/** GET /docs: the OpenAPI document for reading, the same for everybody. Every problem's `type` leads to its line here. */
export const getDocs = perObject(async (described: Promise<OpenApi>): Promise<Result<Reply, never>> => {
  const { document } = await described;
  return page(
    "API",
    html`${all(
      String(document.info["description"])
        .split("\n\n")
        .map((text) => html`<p>${prose(text)}</p>`),
    )}
${contents(document)}
<h2 id="operations">Operations</h2>
${operations(document)}
<h2 id="errors">Errors</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Errors"><table><thead><tr><th>Status</th><th>Code, meaning, and what to do</th></tr></thead>
<tbody>${all(Object.entries(PROBLEMS).map(([code, p]) => html`<tr id="${code}"><td class="num">${p.status}</td><td><code>${code}</code><br>${p.title}: ${prose(p.advice)}</td></tr>`))}</tbody></table></div>
<h2 id="schemas">Schemas</h2>
${all(
  Object.entries(document.components.schemas).map(
    ([
      name,
      schema,
    ]) => html`<details id="schema-${name}"><summary><code>${name}</code> ${schema["description"] ?? ""}</summary>
<pre tabindex="0">${JSON.stringify(schema, null, 2)}</pre></details>`,
  ),
)}
<p class="to-contents"><a href="#contents">Contents</a></p>`,
  );
});

/** The page's contents by the operations' tags, and an example of each kind of decision; folded for small screens. */
function contents(document: OpenApiDocument): Html | Promise<Html> {
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      words: `${method.toUpperCase()} ${path}`,
      of: operation as unknown as Described,
    })),
  );
  const byTag = Map.groupBy(described, ({ of }) => of.tags?.[0] ?? "others");
  const kinds = described.flatMap(({ of }) =>
    examplesOf(of).flatMap(({ id, name }) => (id === "" ? [] : [{ id, name }])),
  );
  const group = (title: string, links: readonly Html[] | readonly Promise<Html>[]): Html | Promise<Html> =>
    html`<details class="card"><summary>${title} <span class="soft">${links.length}</span></summary><ul class="names">${all(links)}</ul></details>`;
  const link = (id: string, words: string, title = ""): Html =>
    html`<li><a href="#${id}" title="${title}"><code>${breakable(words)}</code></a></li>` as Html;
  return html`<nav id="contents" class="contents" aria-label="Contents">${all([
    ...[...byTag].map(([tag, list]) =>
      group(
        titled(tag),
        list.map(({ words, of }) => link(of.operationId, words, of.summary)),
      ),
    ),
    group(
      "Examples by kind",
      kinds.map(({ id, name }) => link(id, name)),
    ),
    group(
      "Errors",
      Object.keys(PROBLEMS).map((code) => link(code, code)),
    ),
    group(
      "Schemas",
      Object.keys(document.components.schemas).map((name) => link(`schema-${name}`, name)),
    ),
  ])}</nav>`;
}

const operations = (document: OpenApiDocument): Promise<Html> =>
  all(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) =>
        section(method.toUpperCase(), path, operation as unknown as Described),
      ),
    ),
  );

const section = (method: string, path: string, operation: Described): Html | Promise<Html> => html`
<h3 id="${operation.operationId}"><code><span class="method">${method}</span> ${breakable(path)}</code></h3>
<p>${operation.summary}. ${prose(operation.description ?? "")} ${operation["x-scope"] === undefined ? "" : html`<span class="soft">Scope: ${operation["x-scope"]}.</span>`}</p>
${parameters(operation)}${example(operation)}${answers(operation)}`;

function parameters({ operationId, parameters: list = [] }: Described): Html | Promise<Html> | "" {
  if (list.length === 0) return "";
  const rows = list.map(
    (p) =>
      html`<dt><code>${p.name}</code> <span class="soft small">${p.in}</span></dt><dd>${prose(p.description.replace(/\.$/, ""))}. <span class="soft">${typeOf(p.schema)}</span></dd>`,
  );
  return html`<dl class="pairs parameters card" aria-label="Parameters of ${operationId}">${all(rows)}</dl>`;
}
/** `integer, 1 to 500, else 100`. */
function typeOf(schema: Fields): string {
  const { enum: words, anyOf, minimum, maximum, default: usual, type, format } = schema;
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(one as Fields)).join(", or ");
  const form = Array.isArray(words) ? words.join(", ") : String(format ?? type);
  const range = minimum === undefined && maximum === undefined ? "" : `, ${minimum ?? ""} to ${maximum ?? ""}`;
  return `${form}${range}${usual === undefined ? "" : `, else ${String(usual)}`}`;
}

/** The examples of a request body; an example with a name has an id to link to. */
function examplesOf({ operationId, requestBody }: Described) {
  const [entry] = Object.entries(requestBody?.content ?? {});
  if (entry === undefined) return [];
  const [type, { example: only, examples }] = entry;
  return Object.entries(examples ?? { "": { value: only } }).map(([name, { value }]) => ({
    ...{ type, name, value },
    id: name === "" ? "" : `${operationId}-${name}`,
  }));
}

function example(operation: Described): Html | Promise<Html> | "" {
  const named = examplesOf(operation);
  if (named.length === 0) return "";
  const shown = named.map(({ id, type, name, value }) => {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    return html`<details${id === "" ? "" : html` id="${id}"`}><summary>Example${name === "" ? "" : html`: <code>${name}</code>`} <span class="soft">${type}</span></summary><pre tabindex="0">${text}</pre></details>`;
  });
  return named.length === 1 ? all(shown) : html`<div class="examples">${all(shown)}</div>`;
}

const answers = ({
  operationId,
  responses,
}: Described): Html | Promise<Html> => html`<details><summary>Answers: ${Object.keys(responses).join(", ")}</summary>
<dl class="pairs card" aria-label="Answers of ${operationId}">${all(Object.entries(responses).map(([status, r]) => html`<dt>${status}</dt><dd>${prose(r.description)}</dd>`))}</dl></details>`;
