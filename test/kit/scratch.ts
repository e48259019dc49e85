import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished, TestRunner } from "vitest";

/**
 * The path of an empty folder, which is removed with all in it. Called in a test or a beforeEach: at the end of that test. Called
 * outside of tests: at the end of the file or the describe, and the folder is made before its first test, unless all are
 * skipped. Not to be called in a beforeAll. Its name is short, for the path of a socket has 107 characters at most.
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
