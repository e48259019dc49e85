import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that lives as long as the running test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-db-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
