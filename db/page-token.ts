/** A place in a list that is ordered by time, then by the order of storing. */
export interface Place {
  readonly atMs: number;
  readonly seq: number;
}

/** An opaque token that continues a list after `place`. */
export const encodePageToken = (place: Place): string =>
  btoa(`${place.atMs}.${place.seq}`).replaceAll("=", "").replaceAll("+", "-").replaceAll("/", "_");

/** The place of a token; null when no list gave it out. */
export function decodePageToken(token: string): Place | null {
  if (!/^[\w-]{4,64}$/.test(token)) return null;
  let text: string;
  try {
    text = atob(token.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return null;
  }
  const parts = /^(-?\d{1,16})\.(\d{1,16})$/.exec(text);
  if (parts === null) return null;
  const place = { atMs: Number(parts[1]), seq: Number(parts[2]) };
  return encodePageToken(place) === token ? place : null;
}
