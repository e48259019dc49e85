const FIRST_MS = Date.parse("0000-01-01T00:00:00Z");

const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** Milliseconds since the epoch as RFC 3339; what is damaged and no time, as the first or the last that it can tell. */
export const rfc3339 = (ms: number): string => new Date(Math.max(FIRST_MS, Math.min(LAST_MS, ms))).toISOString();
