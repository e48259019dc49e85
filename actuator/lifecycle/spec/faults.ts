import type { SpecFault } from "../pod.ts";

const MOST = 100;

/** The faults of one object, each once. */
export class Faults {
  readonly all: SpecFault[] = [];
  readonly #mistyped = new Set<string>();

  /** More would not be told. */
  get areFull(): boolean {
    return this.all.length >= MOST;
  }
  add(at: string, message: string): void {
    const path = at === "" ? "$" : at;
    if (this.areFull || this.#mistyped.has(path)) return;
    if (!this.all.some((f) => f.path === path && f.message === message)) this.all.push({ path, message });
  }
  /** Of a value of another type; nothing more is said of it. */
  mistyped(path: string, message: string): void {
    this.add(path, message);
    this.#mistyped.add(path === "" ? "$" : path);
  }
}
