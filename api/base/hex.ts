/** For each byte: JavaScript's own conversion of a number takes longer than a hash does. */
const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Two hex digits for each byte, lower case. */
export function hex(bytes: Iterable<number>): string {
  let text = "";
  for (const byte of bytes) text += DIGITS[byte];
  return text;
}
