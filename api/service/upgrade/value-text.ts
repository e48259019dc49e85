/** A value of JSON on one line; undefined: there is none. */
export const valueText = (value: unknown): string => (value === undefined ? "(none)" : JSON.stringify(value));
