import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { ok } from "../../../api/base/result.ts";
import { scratchFolder } from "../../kit/scratch.ts";

export function ownDirectory(): string {
  const dir = scratchFolder();
  return dir;
}

/** The log of a container that writes numbered lines. As in a runtime, the file stays open when it is renamed. */
export class WrittenLog {
  readonly directory: string;
  readonly name = "0.log";
  #fd: number;
  #lines = 0;

  constructor(directory: string) {
    mkdirSync(directory, { recursive: true });
    this.directory = directory;
    this.#fd = this.#open();
  }
  get path(): string {
    return join(this.directory, this.name);
  }
  get lines(): number {
    return this.#lines;
  }
  write(lines = 10): void {
    for (let i = 0; i < lines; i++) writeSync(this.#fd, `2026-01-01T00:00:00.000000000Z stdout F ${this.#lines++}\n`);
  }
  /** Does what ReopenContainerLog does. */
  readonly reopen = async () => {
    const fd = this.#open();
    closeSync(this.#fd);
    this.#fd = fd;
    return ok(null);
  };
  files(): readonly string[] {
    return readdirSync(this.directory).sort();
  }
  /** The number of each line that can be read, from the oldest. */
  numbers(): readonly number[] {
    const names = this.files().filter((name) => !name.endsWith(".tmp") && name !== this.name);
    const texts = [...names, ...this.files().filter((name) => name === this.name)].map((name) => {
      const bytes = readFileSync(join(this.directory, name));
      return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
    });
    return texts
      .join("")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => Number(line.slice(line.lastIndexOf(" "))));
  }
  #open(): number {
    return openSync(this.path, "a", 0o640);
  }
}
