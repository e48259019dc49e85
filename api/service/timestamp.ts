const FIRST_MS = Date.parse("0000-01-01T00:00:00Z");

const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** Epoch milliseconds as RFC 3339; a value outside the range of dates becomes the first or the last date. */
export const rfc3339 = (ms: number): string => new Date(Math.max(FIRST_MS, Math.min(LAST_MS, ms))).toISOString();
