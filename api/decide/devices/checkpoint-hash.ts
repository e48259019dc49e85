const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;
const UTF8 = new TextEncoder();
const SPACE = 0x20;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const ZERO = 0x30;

/** FNV-1a of 32 bits over one piece after the other. */
export class Fnv1a {
  #hash = OFFSET;

  get sum(): number {
    return this.#hash >>> 0;
  }
  /** In UTF-8. */
  addText(text: string): void {
    this.add(UTF8.encode(text));
  }
  add(bytes: Uint8Array): void {
    let hash = this.#hash;
    for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), PRIME);
    this.#hash = hash;
  }
}

/** Bytes of base64 as Go's spew prints them, `[0 1 255]`: digits are written in place, since there may be millions. */
export function dumpOf(base64: string): Uint8Array {
  const data = atob(base64);
  const dump = new Uint8Array(4 * data.length + 2);
  let at = 0;
  dump[at++] = OPEN;
  for (let i = 0; i < data.length; i++) {
    const byte = data.charCodeAt(i);
    if (i > 0) dump[at++] = SPACE;
    if (byte >= 100) dump[at++] = ZERO + Math.floor(byte / 100);
    if (byte >= 10) dump[at++] = ZERO + (Math.floor(byte / 10) % 10);
    dump[at++] = ZERO + (byte % 10);
  }
  dump[at++] = CLOSE;
  return dump.subarray(0, at);
}
