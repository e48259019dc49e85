import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchFolder } from "../../kit/scratch.ts";

const MACHINES = join(import.meta.dirname, "../../data/machines");

/**
 * Writes the files of test/data/machines/NAME.txt (`=== /path`, then the content) to a new directory, which is removed
 * after the test. `changes` overrides files: a text replaces or adds a file, null removes it.
 */
export function plantMachine(name: string, changes: Readonly<Record<string, string | null>> = {}): string {
  const root = scratchFolder();
  const files = new Map<string, string | null>(filesOf(readFileSync(join(MACHINES, `${name}.txt`), "utf8")));
  for (const [path, text] of Object.entries(changes)) files.set(path, text);
  for (const [path, text] of files) {
    if (text === null) continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function filesOf(bundle: string): [string, string][] {
  const [, ...files] = bundle.split(/^=== /m);
  return files.map((file) => {
    const end = file.indexOf("\n");
    return [file.slice(0, end), file.slice(end + 1)];
  });
}

export const readData = (name: string): unknown => JSON.parse(readFileSync(join(MACHINES, name), "utf8"));
