import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { Outbox } from "../../actuator/client/outbox.ts";
import { scratchFolder } from "../kit/scratch.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = scratchFolder();
  file = join(dir, "outbox.jsonl");
});
const entry = (n: number) => ({ kind: "cgroups" as const, snapshot: { sequence: n }, report: null });

test("entries are still there after a restart, oldest first, and removed one by one", () => {
  const before = Outbox.open(file);
  for (const n of [1, 2, 3]) before.add(entry(n));
  const after = Outbox.open(file);
  expect(after.first()).toEqual(entry(1));
  after.shift();
  expect(after.first()).toEqual(entry(2));
  expect(after.size).toBe(2);
});

const report = { at: "2026-01-01T00:00:00Z", dryRun: false, complete: true, results: [{ status: "applied" }] };

test("results are added to their decision, also after a restart, and the first ones stand", () => {
  const outbox = Outbox.open(file);
  outbox.add(entry(1));
  outbox.add(entry(2));
  outbox.add(entry(1));
  outbox.add({ ...entry(1), report });
  outbox.add({ ...entry(1), report: { ...report, complete: false } });
  outbox.add(entry(1));
  for (const one of [outbox, Outbox.open(file)]) {
    expect(one.size).toBe(2);
    expect(one.first()).toEqual({ ...entry(1), report });
    one.shift();
    expect(one.first()).toEqual(entry(2));
  }
});

test("a decision survives a crash before its results are written", () => {
  const outbox = Outbox.open(file);
  outbox.add(entry(1));
  outbox.add({ ...entry(1), report });
  const text = readFileSync(file, "utf8");
  for (let length = text.indexOf("\n") + 1; length <= text.length; length++) {
    writeFileSync(file, text.slice(0, length));
    const found = Outbox.open(file).first();
    expect(found).toEqual(length < text.length - 1 ? entry(1) : { ...entry(1), report });
  }
});

test("the file of an earlier daemon version is read", () => {
  writeFileSync(file, `${JSON.stringify({ ...entry(1), report })}\n${JSON.stringify(entry(2))}\n`);
  const outbox = Outbox.open(file);
  expect(outbox.first()).toEqual({ ...entry(1), report });
  outbox.add({ ...entry(2), report });
  outbox.shift();
  expect(outbox.first()).toEqual({ ...entry(2), report });
});

test("a line cut off by a crash is dropped, and the others stay", () => {
  const outbox = Outbox.open(file);
  outbox.add(entry(1));
  appendFileSync(file, '{"kind":"cgroups","snapsh');
  expect(Outbox.open(file).size).toBe(1);
});

test("an entry added after a torn line is not lost", () => {
  appendFileSync(file, '{"kind":"cgroups","snapsh');
  const outbox = Outbox.open(file);
  outbox.add(entry(7));
  expect(Outbox.open(file).first()).toEqual(entry(7));
});

test("the outbox is bounded: the oldest entries are dropped and counted", () => {
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

test("removing all entries leaves an empty file, and a crash in between only repeats some", () => {
  const outbox = Outbox.open(file);
  for (let n = 0; n < 10; n++) outbox.add(entry(n));
  outbox.shift();
  expect(Outbox.open(file).first(), "not rewritten yet: sent again").toEqual(entry(0));
  for (let n = 1; n < 6; n++) outbox.shift();
  expect(Outbox.open(file).size).toBeLessThan(10);
  while (outbox.size > 0) outbox.shift();
  expect(Outbox.open(file).size).toBe(0);
});

test("the outbox file is readable by its owner only", () => {
  Outbox.open(file).add(entry(1));
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

const calm = (n: number) => ({ ...entry(n), isCalm: true });
const sequences = (outbox: Outbox): readonly number[] => {
  const found: number[] = [];
  for (let next = outbox.first(); next !== undefined; next = outbox.first()) {
    found.push((next.snapshot as { sequence: number }).sequence);
    outbox.shift();
  }
  return found;
};

test("of entries without action the newest quarter is kept in order, and they are dropped before others", () => {
  const bounds = { entries: 20, bytes: 100_000 };
  const outbox = Outbox.open(file, bounds);
  outbox.add(entry(100));
  for (let n = 0; n < 9; n++) outbox.add(calm(n));
  outbox.add(entry(101));
  expect(sequences(Outbox.open(file, bounds))).toEqual([100, 4, 5, 6, 7, 8, 101]);
  const again = Outbox.open(file, bounds);
  expect(again.size).toBe(0);
  for (const n of [1, 2, 3]) again.add(calm(n));
  for (let n = 100; n < 119; n++) again.add(entry(n));
  // the outbox is full: the calm entries were dropped first, and there is no room for a new one
  expect(again.size).toBe(20);
  again.add(entry(119));
  again.add(calm(4));
  const all = Array.from({ length: 20 }, (_, i) => 100 + i);
  expect(sequences(Outbox.open(file, bounds))).toEqual(all);
});

test("entries without action are recognised after a restart", () => {
  Outbox.open(file).add(calm(1));
  const after = Outbox.open(file, { entries: 4, bytes: 100_000 });
  expect(after.first()).toEqual(entry(1));
  after.add(calm(2));
  expect(sequences(after)).toEqual([2]);
});
