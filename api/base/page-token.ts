/** Encodes a text for a query: its UTF-8 in base64url, without padding. */
export const encodeToken = (text: string): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll("=", "")
    .replaceAll("+", "-")
    .replaceAll("/", "_");

/** Decodes a token; null: it is invalid. */
export function decodeToken(token: string): string | null {
  if (!/^[\w-]+$/.test(token)) return null;
  try {
    const bytes = Uint8Array.from(atob(token.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
