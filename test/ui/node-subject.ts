import type { Hono } from "hono";
import type { Store } from "../../db/store.ts";
import { appOver, decisionRequest } from "../api/serving.ts";
import { captured } from "../kit/real-node.ts";

/** The captured node as a new object. */
export const capturedSnapshot = (): Record<string, never> & CapturedSnapshot => captured("snapshot.json");
/** The parts of the captured node that tests change. */
export interface CapturedSnapshot {
  observedAt: string;
  node: { metadata: { name: string }; status: { nodeInfo: Record<string, string> } };
  kubeletConfiguration: Record<string, unknown>;
  pods: { metadata: { name: string; uid: string }; spec: { containers: { name: string }[] } }[];
  stats: { node: { memory: Record<string, unknown> } };
}
export interface Shown {
  readonly status: number;
  readonly html: string;
  /** The readable text of the element with this id. */
  readonly text: (id: string) => string;
}
export interface Subject {
  readonly app: Hono;
  readonly store: Store;
  readonly decide: (kind: string, body: object) => Promise<{ readonly id: string; readonly decision: never }>;
  readonly show: (path: string) => Promise<Shown>;
}

/** The real app over a history in memory. */
export function subject(ports: Parameters<typeof appOver>[0] = {}): Subject {
  const { app, store } = appOver(ports);
  return {
    app,
    store,
    decide: async (kind, body) => {
      const answer = await app.request(decisionRequest(body, kind));
      if (!answer.ok) throw new Error(await answer.text());
      return (await answer.json()) as { id: string; decision: never };
    },
    show: async (path) => {
      const answer = await app.request(`http://localhost${path}`, { headers: { accept: "text/html" } });
      const html = await answer.text();
      return { status: answer.status, html, text: (id) => readable(partOf(html, id)) };
    },
  };
}

/** The markup of the element with this id, including nested elements of the same name. */
export function partOf(html: string, id: string): string {
  const start = html.search(new RegExp(`<(\\w+)[^>]*\\sid="${id.replaceAll(/[^\w-]/g, "\\$&")}"`));
  if (start < 0) throw new Error(`there is no element \`${id}\``);
  const name = /<(\w+)/.exec(html.slice(start))?.[1] as string;
  let depth = 0;
  for (const tag of html.slice(start).matchAll(new RegExp(`<(/?)${name}\\b`, "g"))) {
    depth += tag[1] === "" ? 1 : -1;
    if (depth === 0) return html.slice(start, start + tag.index);
  }
  throw new Error(`the element \`${id}\` does not end`);
}

/** The text of a page without tags and entities, and without the text in pictures. */
export const readable = (html: string): string =>
  html
    .replaceAll(/<(svg|script)\b.*?<\/\1>/gs, " ")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ")
    .trim();

/** The data of a signal's plot. */
export const plotData = (html: string, signal: string): { times: number[]; values: number[]; limits: unknown[] } =>
  JSON.parse(/<script type="application\/json">(.*?)<\/script>/s.exec(partOf(html, `plot-${signal}`))?.[1] as string);
