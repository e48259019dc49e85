import { html } from "./html.ts";
import type { Html } from "./page.ts";

/** A node's name as the link to its page: on one line, cut where it is overlong, and whole where one points at it. */
export const nodeName = (name: string): Html | Promise<Html> =>
  html`<a class="node-name" href="/nodes/${encodeURIComponent(name)}" title="${name}">${name}</a>`;

/** Nodes of a fleet that a form offers; any other may be written into its field. */
export const MAX_OFFERED = 500;
