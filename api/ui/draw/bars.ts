import { html } from "../html.ts";
import type { Html } from "../page.ts";

/** A part of a whole; `tone` is a class of the style sheet, the words are shown as a tooltip. */
export interface Segment {
  readonly size: number;
  readonly tone: string;
  readonly words: string;
}
/** A line across a bar, at a share of the whole from 0 to 1. */
interface Mark {
  readonly at: number;
  readonly words: string;
}

const WIDTH = 1000;
const HEIGHT = 20;
/** Least width of a part, so that every part that exists is seen. */
const MIN_WIDTH = 4;

/** Parts of a whole side by side, as wide as the space allows. `words` describe the picture; an empty whole is not drawn. */
export function stackBar(segments: readonly Segment[], words: string, marks: readonly Mark[] = []): Html | "" {
  const sizes = segments.map(({ size }) => Math.max(0, size));
  const total = sizes.reduce((a, b) => a + b, 0);
  if (!(total > 0) || !Number.isFinite(total)) return "";
  const wanted = sizes.map((size) => (size === 0 ? 0 : Math.max(MIN_WIDTH, (size / total) * WIDTH)));
  const scale = WIDTH / wanted.reduce((a, b) => a + b, 0);
  let x = 0;
  const rects = segments.flatMap((segment, i) => {
    const width = (wanted[i] as number) * scale;
    if (width === 0) return [];
    const rect = html`<rect class="${segment.tone}" x="${x.toFixed(1)}" width="${width.toFixed(1)}" height="${HEIGHT}"><title>${segment.words}</title></rect>`;
    x += width;
    return [rect];
  });
  return html`<svg class="bar" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${words}">${rects}${marks.map(markOf)}</svg>`;
}

function markOf({ at, words }: Mark): Html | Promise<Html> {
  const x = (Math.max(0, Math.min(1, at)) * WIDTH).toFixed(1);
  return html`<path class="mark" d="M${x} 0V${HEIGHT}"><title>${words}</title></path>`;
}

/** A stretch of time, or with `toMs` null a moment of it; its tone is a class of the style sheet. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number | null;
  readonly tone: string;
  /** 1: the whole height, from the bottom. */
  readonly height: number;
  readonly words?: string;
}
const LANE_HEIGHT = 16;
const MOMENT = 3;

/** A lane of time from 0 to `endMs`, as wide as there is room. */
export function lane(stretches: readonly Stretch[], endMs: number, words: string): Html {
  const scale = WIDTH / Math.max(1, endMs);
  const drawn = stretches.map(({ fromMs, toMs, tone, height, words: what }) => {
    const x = Math.min(WIDTH - MOMENT, fromMs * scale);
    const width = toMs === null ? MOMENT : Math.max(MOMENT, (toMs - fromMs) * scale);
    const rect = html`<rect class="${tone}" x="${x.toFixed(1)}" y="${(LANE_HEIGHT * (1 - height)).toFixed(1)}" width="${width.toFixed(1)}" height="${(LANE_HEIGHT * height).toFixed(1)}"/>`;
    return what === undefined ? rect : html`<g><title>${what}</title>${rect}</g>`;
  });
  return html`<svg class="lane" viewBox="0 0 ${WIDTH} ${LANE_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${words}"><path class="line" d="M0 ${LANE_HEIGHT - 0.5}H${WIDTH}"/>${drawn}</svg>`;
}
