export type Fields = Readonly<Record<string, unknown>>;

/** Of JSON that nobody has checked: what is missing, or of another kind, is empty. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
export const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
