import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { nextStamp, rotatedLogs } from "../../../actuator/pods/logs/rotated.ts";
import { type LogFiles, restoreLog, rotateLog, systemLogFiles } from "../../../actuator/pods/logs/rotation.ts";
import { err } from "../../../api/base/result.ts";
import { ownDirectory, WrittenLog } from "./written-log.ts";

const MAX_FILES = 5;
const timed = (second: number) => ({ now: new Date(2026, 0, 1, 12, 0, second) });
const stamp = (second: number) => `20260101-1200${String(second).padStart(2, "0")}`;
const unavailable = err({ call: "ReopenContainerLog", code: "UNAVAILABLE", message: "it is away" });

async function rotate(log: WrittenLog, second: number, files: LogFiles = systemLogFiles, reopen = log.reopen) {
  return rotateLog(
    { ...log, directory: log.directory, name: log.name, maxFiles: MAX_FILES, reopen },
    { ...timed(second), files },
  );
}
/** Rotated so often that each further rotation takes all steps: it removes one file, compresses one and renames one. */
async function full(): Promise<WrittenLog> {
  const log = new WrittenLog(ownDirectory());
  for (let second = 1; second <= 5; second++) {
    log.write();
    expect(await rotate(log, second)).toEqual({ ok: true, value: { notes: [] } });
  }
  log.write();
  return log;
}
const from = (first: number, end: number): readonly number[] =>
  Array.from({ length: end - first }, (_, i) => first + i);

test("rotation keeps the newest rotated log plain, compresses older ones and removes the oldest", async () => {
  const log = await full();
  chmodSync(join(log.directory, `0.log.${stamp(5)}`), 0o604);
  const expected = (newest: number) => [
    "0.log",
    ...[3, 2, 1].map((back) => `0.log.${stamp(newest - back)}.gz`),
    `0.log.${stamp(newest)}`,
  ];
  expect(log.files()).toEqual(expected(5));
  expect(log.numbers()).toEqual(from(10, 60));
  expect(await rotate(log, 6)).toEqual({ ok: true, value: { notes: [] } });
  expect(log.files()).toEqual(expected(6));
  expect(log.numbers()).toEqual(from(20, 60));
  expect(statSync(join(log.directory, `0.log.${stamp(5)}.gz`)).mode & 0o777).toBe(0o604);
});

class Killed extends Error {}
type Where = "before" | "midway" | "after";
/** Stops all work from the n-th step on, as if the process had been killed there. */
function killedAt(n: number, where: Where) {
  let step = 0;
  const at = async <T>(work: () => Promise<T>): Promise<T> => {
    step++;
    if (step > n || (step === n && where === "before")) throw new Killed();
    const done = await work();
    if (step === n) throw new Killed();
    return done;
  };
  const files: LogFiles = {
    rename: (a, b) => at(() => systemLogFiles.rename(a, b)),
    link: (a, b) => at(() => systemLogFiles.link(a, b)),
    unlink: (a) => at(() => systemLogFiles.unlink(a)),
    compress: (a, b, signal) =>
      at(async () => {
        if (step === n && where === "midway") writeFileSync(b, readFileSync(a).subarray(0, 20));
        else await systemLogFiles.compress(a, b, signal);
      }),
  };
  return { files, at, steps: () => step };
}

describe("rotation killed between any two steps", () => {
  const cases = from(1, 7).flatMap((n) => (["before", "midway", "after"] as const).map((where) => [where, n] as const));
  test.each(cases)("%s step %i: loses and duplicates no line", async (where, n) => {
    const log = await full();
    const { files, at, steps } = killedAt(n, where);
    const reopen = () => at(() => log.reopen());
    const ended = await rotate(log, 6, files, reopen).catch((error: unknown) => error);
    // unlink, compress, rename, unlink, rename, reopen
    expect([ended instanceof Killed, Math.min(n, steps())]).toEqual([true, n]);
    // the container continues, regardless of who reads its output
    log.write();
    const first = log.numbers().find(() => true) as number;
    expect(first).toBeLessThanOrEqual(20);
    if (!existsSync(log.path)) await log.reopen();
    log.write();
    expect(await rotate(log, 7)).toEqual({ ok: true, value: { notes: [] } });
    const numbers = log.numbers();
    expect(numbers).toEqual(from(numbers[0] as number, log.lines));
    expect(numbers[0]).toBeLessThanOrEqual(40);
    expect(log.files().length).toBeLessThanOrEqual(MAX_FILES);
    expect(log.files().filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test.each(cases)("%s step %i, with the container ended meanwhile: gives the log its name back", async (where, n) => {
    const log = await full();
    const { files, at } = killedAt(n, where);
    await rotate(log, 6, files, () => at(() => log.reopen())).catch(() => {});
    if (!existsSync(log.path)) expect(await restoreLog(log.directory, log.name)).toBe(true);
    expect(existsSync(log.path)).toBe(true);
    const numbers = log.numbers();
    const once = [...new Set(numbers)];
    // a file may be compressed and not yet removed: readers leave out unused files
    const { inUse, unused } = await rotatedLogs(log.directory, log.name);
    expect(once).toEqual(from(once[0] as number, 60));
    expect(inUse.length + unused.length + 1).toBe(log.files().length);
  });

  test.each(from(1, 4))("while the log gets its name back, at step %i: loses and duplicates no line", async (n) => {
    const log = await full();
    let second = 0;
    const { files, at } = killedAt(n, n % 2 === 0 ? "after" : "before");
    const reopen = async () => {
      second++;
      return unavailable;
    };
    const own: LogFiles = {
      ...systemLogFiles,
      link: files.link,
      unlink: (path) => (second > 0 ? at(() => systemLogFiles.unlink(path)) : systemLogFiles.unlink(path)),
    };
    await rotate(log, 6, own, reopen as never).catch(() => {});
    log.write();
    if (!existsSync(log.path)) await log.reopen();
    log.write();
    expect(await rotate(log, 7)).toMatchObject({ ok: true });
    expect(log.numbers()).toEqual(from(log.numbers()[0] as number, log.lines));
  });
});

const fails = (code: string, syscall: string) =>
  Object.assign(new Error(`${code}: refused, ${syscall} 'x'`), { code, syscall, path: "x" });

describe("rotation with a failing step", () => {
  test("gives the log its name back when the runtime does not reopen it, and works the next time", async () => {
    const log = await full();
    const before = statSync(log.path).ino;
    const ended = await rotate(log, 6, systemLogFiles, (async () => unavailable) as never);
    expect(ended).toEqual({ ok: false, error: "failed to reopen container log: UNAVAILABLE: it is away" });
    expect(statSync(log.path).ino).toBe(before);
    log.write();
    expect(await rotate(log, 7)).toEqual({ ok: true, value: { notes: [] } });
    expect(log.numbers()).toEqual(from(20, log.lines));
  });

  test("does not overwrite the new log when only the runtime's answer was lost", async () => {
    const log = await full();
    const answerless = async () => {
      await log.reopen();
      log.write();
      return unavailable;
    };
    expect(await rotate(log, 6, systemLogFiles, answerless as never)).toEqual({
      ok: true,
      value: { notes: ["failed to reopen container log: UNAVAILABLE: it is away"] },
    });
    expect(log.numbers()).toEqual(from(20, log.lines));
  });

  test("on a full disk keeps what cannot be compressed, and still bounds the logs", async () => {
    const log = await full();
    const compress = async (_: string, to: string): Promise<void> => {
      writeFileSync(to, "a part");
      throw fails("ENOSPC", "write");
    };
    for (let second = 6; second < 14; second++) {
      log.write();
      const rotated = await rotate(log, second, { ...systemLogFiles, compress });
      expect(rotated).toMatchObject({ ok: true, value: { notes: [expect.stringMatching(/^failed to compress log/)] } });
      expect(log.files().length).toBe(MAX_FILES);
      expect(log.files().some((name) => name.endsWith(".tmp"))).toBe(false);
      const numbers = log.numbers();
      expect(numbers).toEqual(from(numbers[0] as number, log.lines));
    }
    // once there is space, all files that remained uncompressed are compressed
    expect(await rotate(log, 14)).toEqual({ ok: true, value: { notes: [] } });
    expect(log.files().filter((name) => name.endsWith(".gz"))).toHaveLength(3);
  });

  test.each(["rename", "unlink"] as const)("leaves the log as it was when the system refuses to %s", async (step) => {
    const log = await full();
    const refuse = async (): Promise<void> => {
      throw fails("EROFS", step);
    };
    const ended = await rotate(log, 6, { ...systemLogFiles, [step]: refuse });
    expect(ended).toEqual({ ok: false, error: `${step} x: read-only file system` });
    expect(existsSync(log.path)).toBe(true);
    log.write();
    expect(await rotate(log, 7)).toMatchObject({ ok: true });
    expect(log.numbers()).toEqual(from(log.numbers()[0] as number, log.lines));
  });

  test("stops cleanly when it is aborted while compressing", async () => {
    const log = await full();
    const ended = await rotateLog(
      { directory: log.directory, name: log.name, maxFiles: MAX_FILES, reopen: log.reopen },
      { signal: AbortSignal.abort() },
    );
    expect(ended).toEqual({ ok: false, error: "rotation of 0.log was interrupted" });
    expect(log.files().filter((name) => name.endsWith(".tmp"))).toEqual([]);
    expect(log.numbers()).toEqual(from(20, 60));
  });
});

test("links, directories and foreign names are not touched, and no link is followed", async () => {
  const log = await full();
  const outside = join(ownDirectory(), "secret");
  writeFileSync(outside, "secret");
  symlinkSync(outside, join(log.directory, "0.log.20250101-000000"));
  symlinkSync(outside, join(log.directory, "0.log.20250101-000001.tmp"));
  mkdirSync(join(log.directory, "0.log.20250101-000002"));
  for (const name of ["0.log.bak", "0.log.1", "1.log.20260101-000000", "10.log.20260101-000000"])
    writeFileSync(join(log.directory, name), name);
  const others = log.files().filter((name) => !name.startsWith("0.log.2026") && name !== "0.log");
  expect(others).toHaveLength(7);
  expect(await rotate(log, 6)).toMatchObject({ ok: true });
  expect(log.files()).toEqual(expect.arrayContaining([...others]));
  expect(readFileSync(outside, "utf8")).toBe("secret");
  // a hard link to the log itself is not a rotated log
  linkSync(log.path, join(log.directory, `0.log.${stamp(9)}`));
  expect(await rotate(log, 8)).toMatchObject({ ok: true });
  expect(log.files()).toContain(`0.log.${stamp(8)}`);
  expect(log.files()).not.toContain(`0.log.${stamp(9)}`);
});

test("rotated names always increase, whatever the clock does", () => {
  const now = new Date(2026, 0, 31, 23, 59, 59);
  expect(nextStamp(now, undefined)).toBe("20260131-235959");
  expect(nextStamp(now, "20260131-235958")).toBe("20260131-235959");
  expect(nextStamp(now, "20260131-235959")).toBe("20260201-000000");
  expect(nextStamp(now, "20281231-235959")).toBe("20290101-000000");
});
