import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchFolder } from "../../kit/scratch.ts";

/** A directory with these files, which is removed after the test. */
export function scratch(files: Readonly<Record<string, string | Uint8Array>>): string {
  const directory = scratchFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
  return directory;
}
