import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished, TestRunner } from "vitest";

/**
 * Returns the path of an empty folder that is removed with its content. Called in a test or a beforeEach: it is removed
 * at the end of that test. Called outside of tests: it is made before the first test of the file or the describe,
 * unless all are skipped, and removed after the last one. Must not be called in a beforeAll. Its name is short, because
 * the path of a socket has at most 107 characters.
 */
export function scratchFolder(parent = tmpdir()): string {
  const folder = join(parent, `nodewise-${randomUUID().slice(0, 8)}`);
  const make = (): void => {
    mkdirSync(folder, { mode: 0o700 });
  };
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  if (TestRunner.getCurrentTest() === undefined) {
    beforeAll(make);
    afterAll(remove);
  } else {
    make();
    onTestFinished(remove);
  }
  return folder;
}
