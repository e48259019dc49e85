import { html } from "../html.ts";
import type { Html } from "../page.ts";

/** A part of a whole; its tone is a class of the style sheet, its words are told where one points at it. */
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

/** Parts of a whole beside each other, as wide as there is room. `words` say what is drawn; nothing is drawn of nothing. */
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
