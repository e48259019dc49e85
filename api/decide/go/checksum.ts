/** FNV-1a, 32 bits, of the text in UTF-8: the checksum of the kubelet's state files. kubelet 1.36: checksum.New. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** A text as Go's encoding/json writes it: also `<`, `>`, `&` and two line separators are escaped. */
export function jsonText(text: string): string {
  const escaped = (c: string): string => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text.toWellFormed()).replace(/[<>&\u2028\u2029]/g, escaped);
}
