/** An object that was posted or read, with unchecked members. */
export type Fields = Readonly<Record<string, unknown>>;
export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** The value's members; none if it is no object. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});

/** A record's own entry: names come from callers, and `constructor` is a valid container name. */
export function own<V>(record: Readonly<Record<string, V>> | null | undefined, key: string): V | undefined {
  return record !== null && record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
