import { appendFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type LinesOptions, type LogFilter, LogLines, nanosOf } from "../../../actuator/pods/logs/lines.ts";
import { LogReader } from "../../../actuator/pods/logs/read.ts";
import { rotateLog } from "../../../actuator/pods/logs/rotation.ts";
import { ownDirectory, WrittenLog } from "./written-log.ts";

function lines(options: Partial<LinesOptions> = {}) {
  const out = { stdout: "", stderr: "" };
  const write = async (stream: "stdout" | "stderr", bytes: Buffer): Promise<void> => {
    out[stream] += bytes.toString();
  };
  return { out, lines: new LogLines({ write, ...options }) };
}
const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, "0")}.5Z`;

describe("reading a log", () => {
  const LOG = [
    `${at(1)} stdout F one`,
    `${at(2)} stderr F to the other`,
    `${at(3)} stdout P a long `,
    `${at(4)} stderr F between`,
    `${at(5)} stdout P:x line`,
    `${at(6)} stdout F `,
    "no such form",
    `${at(7)} stdout F two`,
    "",
  ].join("\n");
  const of = async (options: Partial<LinesOptions>, log = LOG, pieceBytes = 7) => {
    const { out, lines: read } = lines(options);
    for (let from = 0; from < log.length; from += pieceBytes)
      await read.push(Buffer.from(log.slice(from, from + pieceBytes)));
    await read.end();
    return out;
  };

  test("joins the parts of a line, each stream by itself, whatever pieces the file is read in", async () => {
    const whole = { stdout: "one\na long line\ntwo\n", stderr: "to the other\nbetween\n" };
    for (const bytes of [1, 7, 10_000]) expect(await of({}, LOG, bytes)).toEqual(whole);
    expect(await of({}, `${at(1)} stdout F without an end`)).toEqual({ stdout: "without an end", stderr: "" });
  });
  test("puts timestamps and prefixes before lines, not before their parts", async () => {
    expect((await of({ timestamps: true, prefix: "[p] " })).stdout).toBe(
      [1, 3, 7]
        .map((second, i) => `[p] ${at(second).replace(".5Z", ".500000000Z")} ${["one", "a long line", "two"][i]}\n`)
        .join(""),
    );
  });
  test("starts at a time, to the nanosecond, and stops at a number of bytes", async () => {
    expect((await of({ sinceNanos: nanosOf("2026-01-01T01:00:07.5+01:00") as bigint })).stdout).toBe("two\n");
    expect((await of({ sinceNanos: nanosOf("2026-01-01T00:00:07.500000001Z") as bigint })).stdout).toBe("");
    expect(await of({ limitBytes: 6 })).toEqual({ stdout: "one\n", stderr: "to" });
    expect(nanosOf("yesterday")).toBeUndefined();
  });
});

/** Lines 0 to 9, 10 to 19 and so on: four rotated files, three of them compressed, and the file that is written to. */
async function rotated(): Promise<WrittenLog> {
  const log = new WrittenLog(ownDirectory());
  for (let second = 0; second < 4; second++) {
    log.write();
    await turn(log, second);
  }
  log.write();
  return log;
}
const turn = (log: WrittenLog, second: number, maxFiles = 9) =>
  rotateLog(
    { directory: log.directory, name: log.name, maxFiles, reopen: log.reopen },
    { now: new Date(2026, 0, 1, 0, 0, second) },
  );
const text = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `${from + i}\n`).join("");

async function read(log: WrittenLog, filter: LogFilter = {}): Promise<string> {
  const { out, lines: into } = lines(filter.sinceNanos === undefined ? {} : { sinceNanos: filter.sinceNanos });
  const reader = new LogReader(log.path, filter, into);
  try {
    await reader.readAll();
  } finally {
    await reader.close();
  }
  return out.stdout;
}

describe("reading a log with its rotated files", () => {
  test("returns one text, and its last lines from whichever file they begin in", async () => {
    const log = await rotated();
    expect(await read(log)).toBe(text(0, 50));
    for (const tail of [0, 1, 10, 11, 25, 49, 50, 99])
      expect(await read(log, { tail })).toBe(text(Math.max(0, 50 - tail), 50));
    expect(await read(log, { sinceNanos: BigInt(Date.now() + 60_000) * 1_000_000n })).toBe("");
  });
  test("does not repeat what an interrupted rotation left", async () => {
    const log = await rotated();
    const [newest = ""] = log.files().filter((name) => name.endsWith("03"));
    writeFileSync(`${join(log.directory, newest)}.tmp`, "a part");
    expect(await read(log)).toBe(text(0, 50));
    const whole = Array.from({ length: 10 }, (_, i) => `2026-01-01T00:00:00Z stdout F ${30 + i}\n`).join("");
    writeFileSync(`${join(log.directory, newest)}.gz`, gzipSync(whole));
    expect(await read(log)).toBe(text(0, 50));
    renameSync(log.path, `${log.path}.20260101-000009`);
    expect(await read(log)).toBe(text(0, 50));
  });
  test("fails for a missing log, a link, and invalid gzip data", async () => {
    const log = new WrittenLog(ownDirectory());
    rmSync(log.path);
    await expect(read(log)).rejects.toMatchObject({ code: "ENOENT" });
    symlinkSync("/etc/hostname", log.path);
    await expect(read(log)).rejects.toMatchObject({ code: "ELOOP" });
    rmSync(log.path);
    writeFileSync(`${log.path}.20260101-000000.gz`, "no gzip at all");
    await expect(read(log)).rejects.toMatchObject({ code: "Z_DATA_ERROR" });
  });

  test("follows it over rotations, also several between two looks", async () => {
    const log = await rotated();
    const { out, lines: into } = lines();
    const reader = new LogReader(log.path, { tail: 2 }, into);
    await reader.readAll();
    expect(out.stdout).toBe(text(48, 50));
    const more = async (rotations: number): Promise<void> => {
      for (let i = 0; i < rotations; i++) {
        log.write();
        await turn(log, 10 + log.lines);
      }
      log.write();
      for (let i = 0; i < 2; i++) await reader.readMore();
      expect(out.stdout).toBe(text(48, log.lines));
    };
    for (const rotations of [0, 1, 2, 3, 0, 1]) await more(rotations);
    // a write to the former log file after the new file was created
    renameSync(log.path, `${log.path}.20270101-000000`);
    writeFileSync(log.path, "");
    await reader.readMore();
    log.write();
    await reader.readMore();
    expect(out.stdout).toBe(text(48, log.lines));
    appendFileSync(log.path, "2026-01-01T00:00:00Z stdout F new\n");
    await reader.readMore();
    expect(out.stdout).toBe(`${text(48, log.lines)}new\n`);
    await reader.close();
  });
  test("starts again at the beginning when the file was truncated", async () => {
    const log = new WrittenLog(ownDirectory());
    log.write();
    const { out, lines: into } = lines();
    const reader = new LogReader(log.path, {}, into);
    await reader.readAll();
    writeFileSync(log.path, "2026-01-01T00:00:00Z stdout F anew\n");
    await reader.readMore();
    expect(out.stdout).toBe(`${text(0, 10)}anew\n`);
    await reader.close();
  });
  test("does not open old files when only later lines are requested", async () => {
    const log = await rotated();
    const [oldest = ""] = log.files().filter((name) => name.endsWith("00.gz"));
    writeFileSync(join(log.directory, oldest), "not even gzip");
    utimesSync(join(log.directory, oldest), 1000, 1000);
    await expect(read(log)).rejects.toThrow();
    expect(await read(log, { sinceNanos: nanosOf("2026-01-01T00:00:00Z") as bigint })).toBe(text(10, 50));
  });
});
