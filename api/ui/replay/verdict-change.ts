import { html } from "hono/html";
import type { Html } from "../page.ts";
import { verdictTag } from "../verdict-tag.ts";

/** `decided → refused`. Null: it cannot be decided any more, since the new configuration is refused for it. */
export function verdictChange(recorded: string, replayed: string | null): Html {
  const now = replayed === null ? html`<span class="tag bad">not decided</span>` : html`${verdictTag(replayed)}`;
  if (recorded === replayed) return html`${verdictTag(recorded)} <span class="soft small">otherwise</span>`;
  return html`<span class="becomes">${verdictTag(recorded)} <span aria-label="becomes">→</span> ${now}</span>`;
}
