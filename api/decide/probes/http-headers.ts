/** Go's canonical name of a header -> its values, in their order. */
export type HttpHeaders = ReadonlyMap<string, readonly string[]>;

/** `x-test` as `X-Test`; what is no header's name stays as it is. Go: textproto.CanonicalMIMEHeaderKey. */
export const headerKey = (name: string): string =>
  isToken(name) ? name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase()) : name;
export const isToken = (name: string): boolean => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);

/** Go: http.Header.Add of each. */
export function headersOf(list: readonly { readonly name: string; readonly value: string }[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const { name, value } of list) {
    const key = headerKey(name);
    const known = headers.get(key);
    if (known === undefined) headers.set(key, [value]);
    else known.push(value);
  }
  return headers;
}
/** The first value; empty: there is none. Go: http.Header.Get, of a canonical name. */
export const firstOf = (headers: HttpHeaders, key: string): string => headers.get(key)?.[0] ?? "";
