import { appendFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Outbox } from "../../actuator/outbox.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "nodewise-outbox-"));
  file = join(dir, "outbox.jsonl");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));
const entry = (n: number) => ({ kind: "cgroups" as const, snapshot: { sequence: n }, report: null });

test("what was added is there after a restart, oldest first, and goes one by one", () => {
  const before = Outbox.open(file);
  for (const n of [1, 2, 3]) before.add(entry(n));
  const after = Outbox.open(file);
  expect(after.first()).toEqual(entry(1));
  after.shift();
  expect(after.first()).toEqual(entry(2));
  expect(after.size).toBe(2);
});

test("a line that a crash cut off is dropped, the others stay", () => {
  const outbox = Outbox.open(file);
  outbox.add(entry(1));
  appendFileSync(file, '{"kind":"cgroups","snapsh');
  expect(Outbox.open(file).size).toBe(1);
});

test("an entry added after a torn line is not lost with it", () => {
  appendFileSync(file, '{"kind":"cgroups","snapsh');
  const outbox = Outbox.open(file);
  outbox.add(entry(7));
  expect(Outbox.open(file).first()).toEqual(entry(7));
});

test("it is bounded: the oldest go, and are counted", () => {
  const bounds = { entries: 20, bytes: 100_000 };
  const outbox = Outbox.open(file, bounds);
  for (let n = 0; n < 23; n++) outbox.add(entry(n));
  expect(outbox.size).toBe(20);
  expect(outbox.dropped).toBe(3);
  expect(Outbox.open(file, bounds).first()).toEqual(entry(3));
  const narrow = Outbox.open(file, { entries: 20, bytes: 200 });
  narrow.add(entry(99));
  expect(narrow.size).toBeLessThan(5);
});

test("taking everything leaves an empty file, and a crash in between only repeats", () => {
  const outbox = Outbox.open(file);
  for (let n = 0; n < 10; n++) outbox.add(entry(n));
  outbox.shift();
  expect(Outbox.open(file).first(), "not rewritten yet: sent again").toEqual(entry(0));
  for (let n = 1; n < 6; n++) outbox.shift();
  expect(Outbox.open(file).size).toBeLessThan(10);
  while (outbox.size > 0) outbox.shift();
  expect(Outbox.open(file).size).toBe(0);
});

test("only its owner may read it", () => {
  Outbox.open(file).add(entry(1));
  expect(statSync(file).mode & 0o777).toBe(0o600);
});
