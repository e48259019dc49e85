const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;
const UTF8 = new TextEncoder();

/** FNV-1a of 32 bits over one piece after the other. */
export class Fnv1a {
  #hash = OFFSET;

  get sum(): number {
    return this.#hash >>> 0;
  }
  /** Adds the text in UTF-8. */
  addText(text: string): void {
    let hash = this.#hash;
    let i = 0;
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) break;
      hash = Math.imul(hash ^ code, PRIME);
    }
    this.#hash = hash;
    // the rest is beyond ASCII, where characters have several bytes
    if (i < text.length) this.add(UTF8.encode(text.slice(i)));
  }
  add(bytes: Uint8Array): void {
    let hash = this.#hash;
    for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), PRIME);
    this.#hash = hash;
  }
}

/** The checksum of a state file of the kubelet, over its text in UTF-8. kubelet 1.36: checksum.New. */
export function fnv1a(text: string): number {
  const hash = new Fnv1a();
  hash.addText(text);
  return hash.sum;
}
