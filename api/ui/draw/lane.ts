import { html } from "../html.ts";
import type { Html } from "../page.ts";

/** A stretch of time, or with `toMs` null a moment of it; its tone is a class of the style sheet. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number | null;
  readonly tone: string;
  /** 1: the whole height, from the bottom. */
  readonly height: number;
  readonly words?: string;
}
const WIDTH = 1000;
const HEIGHT = 16;
const MOMENT = 3;

/** A lane of time from 0 to `endMs`, as wide as there is room. */
export function lane(stretches: readonly Stretch[], endMs: number, words: string): Html {
  const scale = WIDTH / Math.max(1, endMs);
  const drawn = stretches.map(({ fromMs, toMs, tone, height, words: what }) => {
    const x = Math.min(WIDTH - MOMENT, fromMs * scale);
    const width = toMs === null ? MOMENT : Math.max(MOMENT, (toMs - fromMs) * scale);
    const rect = html`<rect class="${tone}" x="${x.toFixed(1)}" y="${(HEIGHT * (1 - height)).toFixed(1)}" width="${width.toFixed(1)}" height="${(HEIGHT * height).toFixed(1)}"/>`;
    return what === undefined ? rect : html`<g><title>${what}</title>${rect}</g>`;
  });
  return html`<svg class="lane" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${words}"><path class="line" d="M0 ${HEIGHT - 0.5}H${WIDTH}"/>${drawn}</svg>`;
}
