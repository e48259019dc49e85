/**
 * The kernel's own number parsing and rounding, implemented separately from the actuator's so that each checks the
 * other.
 */
export const PAGE = 4096n;
const LONG_MAX = 2n ** 63n - 1n;
export const NO_LIMIT = (LONG_MAX / PAGE) * PAGE;

export const parseInteger = (text: string): bigint | null => (/^-?\d+$/.test(text) ? BigInt(text) : null);

/** page_counter_memparse: whole pages; `infinity` (-1 or max) and every value above the maximum mean no limit. */
export function parsePages(text: string, infinity: string): bigint | null {
  if (text === infinity) return NO_LIMIT;
  const n = parseInteger(text);
  if (n === null || n < 0n) return null;
  return n >= NO_LIMIT ? NO_LIMIT : (n / PAGE) * PAGE;
}

/** Parses a cpulist; null for a text that is not a cpulist. */
export function parseList(text: string): Set<number> | null {
  const members = new Set<number>();
  if (text === "") return members;
  for (const part of text.split(",")) {
    const [first, last = first, ...rest] = part.split("-");
    const from = Number(first);
    const to = Number(last);
    if (rest.length > 0 || !/^\d+$/.test(first ?? "") || !/^\d+$/.test(last ?? "") || to < from) return null;
    for (let id = from; id <= to; id++) members.add(id);
  }
  return members;
}

export function printList(members: ReadonlySet<number>): string {
  const parts: string[] = [];
  for (const id of [...members].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    const end = last === undefined ? Number.NaN : Number(last.split("-").at(-1));
    if (last !== undefined && end === id - 1) parts[parts.length - 1] = `${last.split("-")[0]}-${id}`;
    else parts.push(String(id));
  }
  return parts.join(",");
}

export const contains = (outer: ReadonlySet<number>, inner: ReadonlySet<number>): boolean =>
  [...inner].every((id) => outer.has(id));
