import { expect } from "vitest";
import type { appOver } from "../api/serving.ts";

export type App = ReturnType<typeof appOver>["app"];
type Fields = Readonly<Record<string, string>>;

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
/** Replaces HTML entities by their characters. */
export const unescaped = (html: string): string =>
  html.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ENTITIES[name] ?? "");
/** The visible text of the page. */
export const wordsOf = (html: string): string =>
  unescaped(
    html
      .replace(/<\/(?:td|th|p|h\d|li|div|span)>/g, " ")
      .replace(/<[^>]*>/g, "")
      .replace(/\s+/g, " "),
  );

export interface Shown {
  readonly status: number;
  readonly html: string;
  readonly words: string;
}

async function shown(response: Response): Promise<Shown> {
  const html = await response.text();
  expect(html).not.toMatch(/<script>|\son\w+="|\sstyle="|<style/i);
  return { status: response.status, html, words: wordsOf(html) };
}

export const openPage = async (app: App, path: string, headers: Fields = {}): Promise<Shown> =>
  shown(await app.request(path, { headers: { accept: "text/html", ...headers } }));

/** Posts a form as a browser does. */
export async function postForm(
  app: App,
  path: string,
  fields: Fields,
  { file, headers = {} }: { readonly file?: File; readonly headers?: Fields } = {},
): Promise<Shown> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  if (file !== undefined) form.append("file", file);
  // the body is written first, because a body that is still being written must not remain unread
  const written = new Response(form);
  const body = await written.arrayBuffer();
  const type = written.headers.get("content-type") ?? "";
  const all = { accept: "text/html", "content-type": type, ...headers };
  return shown(await app.request(path, { method: "POST", body, headers: all }));
}

/** The fields that the page's button sends to continue the replay; null: the replay is complete. */
export function goOnOf({ html }: Shown): Fields | null {
  const form = /<form id="go-on"[\s\S]*?<\/form>/.exec(html)?.[0];
  if (form === undefined) return null;
  const inputs = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g);
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, unescaped(value)]));
}

/** The text in the page's text area. */
export const writtenIn = ({ html }: Shown): string =>
  unescaped(/<textarea[^>]*>\n([\s\S]*?)<\/textarea>/.exec(html)?.[1] ?? "");
