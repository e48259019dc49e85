import type { Color, Paint } from "../../text/style.ts";

const WIDTH = 16;
const [USED, FREE, REQUEST] = ["█", "·", "╎"] as const;
/** From this share of what it may have on. */
const HIGH = 0.9;
const RAISED = 0.7;

/**
 * What is used, of the limit with a mark at the request; without a limit of the request. Empty: it has neither, or the use
 * is not known.
 */
export function usageBar(used: number | null, request: number | null, limit: number | null, paint: Paint): string {
  const whole = limit ?? request;
  if (used === null || whole === null || !(whole > 0)) return "";
  const share = Math.min(1, Math.max(0, used / whole));
  const cells = share === 0 ? 0 : Math.max(1, Math.round(share * WIDTH));
  const markAt =
    limit === null || request === null || request >= limit
      ? null
      : Math.min(WIDTH - 1, Math.round((request / limit) * WIDTH));
  const all = USED.repeat(cells) + FREE.repeat(WIDTH - cells);
  const marked = markAt === null ? all : `${all.slice(0, markAt)}${REQUEST}${all.slice(markAt + 1)}`;
  return paint(limit === null ? "cyan" : colorOf(share), marked.slice(0, cells)) + paint("dim", marked.slice(cells));
}
const colorOf = (share: number): Color => (share >= HIGH ? "red" : share >= RAISED ? "yellow" : "green");

/** What the characters mean. */
export const BAR_LEGEND = `${USED} used of the limit, or of the request without one   ${REQUEST} request`;
