import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { takeLock } from "../../actuator/lock.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "nodewise-lock-"));
  file = join(dir, "lock");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("a second taker is told who holds it, and may have it after the release", () => {
  const first = takeLock(file, "boot");
  if (!first.ok) throw new Error(first.error);
  const second = takeLock(file, "boot");
  expect(second.ok ? "" : second.error).toContain(`process ${process.pid} already writes`);
  first.value.release();
  expect(existsSync(file)).toBe(false);
  expect(takeLock(file, "boot").ok).toBe(true);
});

test("what a process that is gone left behind is taken over", () => {
  const gone = spawnSync("true").pid;
  writeFileSync(file, `${gone} 12345 boot`);
  expect(takeLock(file, "boot").ok).toBe(true);
});

test("a process id that another process has by now does not hold it", () => {
  writeFileSync(file, `${process.pid} 1 boot`);
  expect(takeLock(file, "boot").ok).toBe(true);
});

test("a lock of another boot does not count, whatever runs under its id now", () => {
  const held = takeLock(file, "boot-1");
  expect(held.ok).toBe(true);
  expect(takeLock(file, "boot-2").ok).toBe(true);
  expect(readFileSync(file, "utf8")).toContain("boot-2");
  if (held.ok) held.value.release();
  expect(existsSync(file), "an old holder does not take away what is no longer its own").toBe(true);
});
