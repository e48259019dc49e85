import { raw, html as template } from "hono/html";
import type { PodRef } from "../model/forms.ts";
import { rfc3339 } from "../service/timestamp.ts";
import { humanBytes, magnitude, quantityText } from "../text/size.ts";
import { visible } from "../text/style.ts";

export { raw };
export type Html = ReturnType<typeof template>;

/**
 * An HTML template. Values are escaped unless they are templates; control characters in a text are shown as the pictures
 * and codes of `visible`.
 */
export const html = (strings: TemplateStringsArray, ...values: readonly unknown[]): Html =>
  template(strings, ...values.map(shown));

const shown = (value: unknown): unknown => {
  if (typeof value === "string") return visible(value);
  return Array.isArray(value) ? value.map(shown) : value;
};

/** A text for a form field: escaped, and otherwise as it was typed. */
export const asTyped = (text: string): Html => template`${text}`;

/** `2026-01-31 12:00:05 UTC`. */
export const utcText = (ms: number): string =>
  rfc3339(ms)
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");

/** A moment, as it is. */
export const moment = (ms: number): Html => html`<time datetime="${rfc3339(ms)}">${utcText(ms)}</time>`;

/** A time; with scripts, the browser shows how long ago it was. */
export const ago = (ms: number): Html =>
  html`<time datetime="${rfc3339(ms)}" title="${utcText(ms)}" data-age>${utcText(ms)}</time>`;

/** Bytes in readable units, with the exact number as a tooltip. */
export const bytesShown = (bytes: number): Html => html`<span title="${bytes} bytes">${humanBytes(bytes)}</span>`;
/** As bytesShown, for a quantity; a text that is no amount of bytes stays as it is. */
export const quantityShown = (resource: string, written: string): Html | string =>
  quantityText(resource, written) === written ? written : bytesShown(magnitude(written));

/** A node's name as a link to its page: complete in a table, elsewhere on one line and truncated if too long. */
export const nodeName = (name: string, shown: Html | string = name): Html =>
  html`<a class="node-name" href="/nodes/${encodeURIComponent(name)}" title="${name}">${shown}</a>`;

/** A path or host name that may wrap after its dots and hyphens. */
export const breakable = (path: string): Html =>
  html`${path.split(/(?<=[./])/).map((step, i) => (i === 0 ? step : html`<wbr>${step}`))}` as Html;

/** A pod's name, or `shown`, as a link to its explanation on a node; a pod that is gone from the snapshot has only its uid. */
export const podLink = (node: string, { namespace, name, uid }: PodRef, shown?: Html): Html =>
  name === ""
    ? html`(gone) ${uid}`
    : html`<a href="/nodes/${encodeURIComponent(node)}/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}" title="${namespace}/${name}">${shown ?? cutInside(`${namespace}/${name}`)}</a>`;

/** Truncates a name inside and keeps its end, by which pods of one owner differ. */
export function cutInside(name: string): Html {
  if (name.length <= MAX_UNCUT) return html`${name}`;
  return html`<span title="${name}"><span class="cut">${name.slice(0, -KEPT_END)}</span>${name.slice(-KEPT_END)}</span>`;
}
const MAX_UNCUT = 28;
/** The length of a pod's own suffix, and a bit of its owner's. */
const KEPT_END = 8;

/** Capitalizes the first letter. */
export const titled = (words: string): string => `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
