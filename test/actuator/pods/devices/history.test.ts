import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DeviceHistory, readDeviceHistory } from "../../../../actuator/pods/devices/history.ts";
import { systemClock } from "../../../../actuator/pods/pod-clock.ts";
import { scratch } from "../scratch.ts";
import { GPU } from "./manager-kit.ts";

const MIB = 1024 * 1024;
function opened(stateDir = scratch()) {
  const faults: string[] = [];
  const history = new DeviceHistory({ stateDir, clock: systemClock, onFault: (message) => faults.push(message) });
  return { stateDir, file: join(stateDir, "device-history.jsonl"), history, faults };
}
const event = (count: number, more = {}) => ({ kind: "flips", resource: GPU, count, ...more }) as const;
const counts = (stateDir: string, limit = 1_000_000) => {
  const read = readDeviceHistory(stateDir, { limit });
  if (!read.ok) throw new Error(read.error);
  return read.value.map(({ count }) => count);
};

test("entries are stored one per line, and read newest first", () => {
  const { stateDir, file, history } = opened();
  expect(readDeviceHistory(stateDir, { limit: 5 })).toEqual({ ok: true, value: [] });
  history.add([event(1), event(2)]);
  history.add([]);
  history.add([event(3)]);
  expect(counts(stateDir)).toEqual([3, 2, 1]);
  expect(counts(stateDir, 2)).toEqual([3, 2]);
  expect(counts(stateDir, 0)).toEqual([]);
  expect(readFileSync(file, "utf8").split("\n")).toHaveLength(4);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("the history keeps at most two files of 1 MiB, which hold the newest entries without a gap", () => {
  const { stateDir, file, history } = opened();
  const long = { message: "x".repeat(10_000) };
  for (let i = 0; i < 400; i++) history.add([event(i, long)]);
  const sizes = [file, join(stateDir, "device-history.1.jsonl")].map((path) => statSync(path).size);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(MIB);
  expect(sizes[1]).toBeGreaterThan(MIB - 11_000);
  const kept = counts(stateDir);
  expect(kept.length).toBeGreaterThan(100);
  expect(kept).toEqual(kept.map((_, i) => 399 - i));
});

test("entries that exceed one file are split over both", () => {
  const { stateDir, file, history, faults } = opened();
  history.add(Array.from({ length: 150 }, (_, i) => event(i, { message: "x".repeat(10_000) })));
  expect(faults).toEqual([]);
  expect(statSync(file).size).toBeLessThanOrEqual(MIB);
  expect(counts(stateDir)).toEqual(Array.from({ length: 150 }, (_, i) => 149 - i));
});

test("a line cut short by a crash loses only that entry", () => {
  const { stateDir, file, history } = opened();
  history.add([event(1)]);
  appendFileSync(file, '{"at":"2026-01-01T00:00:00.000Z","kind":"fl');
  expect(counts(stateDir)).toEqual([1]);
  opened(stateDir).history.add([event(2)]);
  expect(counts(stateDir)).toEqual([2, 1]);
});

test("only the end of an oversized file is read, and lines that are no entry are skipped", () => {
  const { stateDir, file } = opened();
  const line = (count: number) => `${JSON.stringify({ at: "x", ...event(count) })}\n`;
  writeFileSync(file, `${line(1)}${"y".repeat(2 * MIB)}\n${line(2)}null\n{"kind":"other"}\n${line(3)}`);
  expect(counts(stateDir)).toEqual([3, 2]);
});

test("a failed write is reported once, until a write works again", () => {
  const { stateDir, file, history, faults } = opened();
  mkdirSync(file);
  history.add([event(1)]);
  history.add([event(2)]);
  expect(faults).toEqual([expect.stringContaining(`device history ${file}: EISDIR`)]);
  expect(readDeviceHistory(stateDir, { limit: 1 })).toMatchObject({ ok: false, error: expect.stringContaining(file) });
  rmSync(file, { recursive: true });
  history.add([event(3)]);
  expect(counts(stateDir)).toEqual([3]);
  rmSync(stateDir, { recursive: true });
  history.add([event(4)]);
  expect(faults).toHaveLength(2);
});

test("a link in place of the history file is not followed", () => {
  const { stateDir, file, history, faults } = opened();
  const elsewhere = join(stateDir, "elsewhere");
  writeFileSync(elsewhere, "mine\n");
  symlinkSync(elsewhere, file);
  history.add([event(1)]);
  expect(readFileSync(elsewhere, "utf8")).toBe("mine\n");
  expect(faults).toHaveLength(1);
});

test.skipIf(process.getuid?.() !== 0)("a full disk is reported, and no entry is left half written", () => {
  const stateDir = join(scratch(), "small");
  mkdirSync(stateDir);
  execFileSync("/bin/mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", stateDir]);
  const { history, faults, file } = opened(stateDir);
  for (let i = 0; i < 40; i++) history.add([event(i, { message: "x".repeat(3_000) })]);
  expect(faults).toEqual([expect.stringContaining("ENOSPC")]);
  const kept = counts(stateDir);
  expect(kept.length).toBeGreaterThan(5);
  expect(kept.at(-1)).toBe(0);
  expect(readFileSync(file, "utf8").endsWith("}\n")).toBe(true);
});
