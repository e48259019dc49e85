import { raw, html as template } from "hono/html";
import type { PodRef } from "../model/forms.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { humanBytes, magnitude, quantityText } from "../text/size.ts";
import { visible } from "../text/style.ts";

export { raw };
export type Html = ReturnType<typeof template>;

/**
 * A template of HTML. Everything in it is escaped but other templates, and control characters of a text show as the pictures
 * and codes that `visible` has for them.
 */
export const html = (strings: TemplateStringsArray, ...values: readonly unknown[]): Html =>
  template(strings, ...values.map(shown));

const shown = (value: unknown): unknown => {
  if (typeof value === "string") return visible(value);
  return Array.isArray(value) ? value.map(shown) : value;
};

/** The text that a form sends back: escaped, and otherwise left as it was typed. */
export const asTyped = (text: string): Html => template`${text}`;

/** `2026-01-31 12:00:05 UTC`. */
export const utcText = (ms: number): string =>
  rfc3339(ms)
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");

/** A moment, as it is. */
export const moment = (ms: number): Html => html`<time datetime="${rfc3339(ms)}">${utcText(ms)}</time>`;

/** A moment, of which a browser with scripts tells how long ago it was. */
export const ago = (ms: number): Html =>
  html`<time datetime="${rfc3339(ms)}" title="${utcText(ms)}" data-age>${utcText(ms)}</time>`;

/** Bytes for the eye, exact where one points at them. */
export const bytesShown = (bytes: number): Html => html`<span title="${bytes} bytes">${humanBytes(bytes)}</span>`;
/** The same of a quantity as it was written; what is no amount of bytes stays as it is. */
export const quantityShown = (resource: string, written: string): Html | string =>
  quantityText(resource, written) === written ? written : bytesShown(magnitude(written));

/** A node's name as the link to its page: whole in a table, elsewhere on one line and cut where it is overlong. */
export const nodeName = (name: string, shown: Html | string = name): Html =>
  html`<a class="node-name" href="/nodes/${encodeURIComponent(name)}" title="${name}">${shown}</a>`;

/** A path or a host's name, which is broken behind its points and strokes where it is too long for a line. */
export const breakable = (path: string): Html =>
  html`${path.split(/(?<=[./])/).map((step, i) => (i === 0 ? step : html`<wbr>${step}`))}` as Html;

/** A pod's name, or what is `shown` of it, as the link to its story on a node; one that is gone from the snapshot has only its uid. */
export const podLink = (node: string, { namespace, name, uid }: PodRef, shown?: Html): Html =>
  name === ""
    ? html`(gone) ${uid}`
    : html`<a href="/nodes/${encodeURIComponent(node)}/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}" title="${namespace}/${name}">${shown ?? cutInside(`${namespace}/${name}`)}</a>`;

/** A name that may have to be cut keeps its end: pods of one owner differ by it. */
export function cutInside(name: string): Html {
  if (name.length <= MAX_UNCUT) return html`${name}`;
  return html`<span title="${name}"><span class="cut">${name.slice(0, -KEPT_END)}</span>${name.slice(-KEPT_END)}</span>`;
}
const MAX_UNCUT = 28;
/** A pod's own part of a name that its owner made, and a bit of its owner's. */
const KEPT_END = 8;

/** With a capital letter. */
export const titled = (words: string): string => `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
