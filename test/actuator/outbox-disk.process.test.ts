import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { Outbox } from "../../actuator/client/outbox.ts";
import { NODE } from "../cli/run.ts";
import { scratchFolder } from "../kit/scratch.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = scratchFolder();
  file = join(dir, "outbox.jsonl");
});
const entry = (n: number) => ({ kind: "cgroups" as const, snapshot: { sequence: n }, report: null });

const numberOf = (snapshot: unknown): number => (snapshot as { sequence: number }).sequence;
/** The entries that another daemon would read from the file, oldest first; the file is not changed. */
function onDisk(): readonly number[] {
  const copy = join(dir, "copy/outbox.jsonl");
  mkdirSync(join(dir, "copy"), { recursive: true, mode: 0o700 });
  copyFileSync(file, copy);
  const outbox = Outbox.open(copy);
  const found: number[] = [];
  for (let first = outbox.first(); first !== undefined; first = outbox.first()) {
    found.push(numberOf(first.snapshot));
    outbox.shift();
  }
  return found;
}

test("a crash before the shortened file replaces the old one neither loses nor revives entries", () => {
  const before = Outbox.open(file);
  for (const n of [1, 2, 3]) before.add(entry(n));
  writeFileSync(`${file}.new`, `${JSON.stringify(entry(2))}\n{"kind":"cgro`);
  const after = Outbox.open(file);
  expect(after.size).toBe(3);
  after.shift();
  after.shift();
  // the shorter file is written anew, over the existing one
  expect(onDisk()).toEqual([3]);
  expect(existsSync(`${file}.new`)).toBe(false);
});

test("a line that is no entry is skipped, and the order stays", () => {
  const lines = [entry(1), "text", null, { snapshot: {} }, entry(2)].map((one) => `${JSON.stringify(one)}\n`);
  writeFileSync(file, `${lines[0]}\0\0\n\n${lines.slice(1).join("")}`);
  expect(onDisk()).toEqual([1, 2]);
});

describe("while the outbox file cannot be written", () => {
  test("adding an entry throws, but the entry is kept and written as soon as possible", () => {
    const outbox = Outbox.open(file);
    outbox.add(entry(1));
    rmSync(file);
    mkdirSync(file);
    expect(() => outbox.add(entry(2))).toThrow("EISDIR");
    expect(() => outbox.add(entry(3))).toThrow();
    rmSync(file, { recursive: true });
    expect(outbox.first()).toEqual(entry(1));
    expect(onDisk()).toEqual([1, 2, 3]);
    outbox.add(entry(4));
    expect(onDisk()).toEqual([1, 2, 3, 4]);
  });
  test("a link in place of the new file is not followed, and no unfinished file remains", () => {
    const outbox = Outbox.open(file);
    for (const n of [1, 2]) outbox.add(entry(n));
    const victim = join(dir, "victim");
    writeFileSync(victim, "mine");
    symlinkSync(victim, `${file}.new`);
    outbox.shift();
    expect(readFileSync(victim, "utf8")).toBe("mine");
    expect(existsSync(`${file}.new`)).toBe(false);
    expect([outbox.size, onDisk()]).toEqual([1, [1, 2]]);
    outbox.add(entry(3));
    expect(onDisk()).toEqual([2, 3]);
  });
  test("a removed entry is no longer in this process, though still on disk", () => {
    const outbox = Outbox.open(file);
    for (const n of [1, 2]) outbox.add(entry(n));
    mkdirSync(`${file}.new`);
    outbox.shift();
    expect([outbox.size, onDisk()]).toEqual([1, [1, 2]]);
  });
});

/**
 * A daemon that adds entries without end and removes each fifth, until it is killed. Returns the last entry that was
 * added, and the last that was removed.
 */
async function killedAfter(entries: number): Promise<{ readonly kept: number; readonly taken: number }> {
  const module = new URL("../../actuator/client/outbox.ts", import.meta.url).href;
  const program = `
    import { writeSync } from "node:fs";
    import { Outbox } from ${JSON.stringify(module)};
    const outbox = Outbox.open(${JSON.stringify(file)});
    for (let n = 0; ; n++) {
      outbox.add({ kind: "cgroups", snapshot: { sequence: n, text: "x".repeat(2000) }, report: null });
      writeSync(1, "kept\\n");
      if (n % 5 === 4) outbox.shift();
      if (n % 5 === 4) writeSync(1, "taken\\n");
    }`;
  const child = spawn(NODE, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  // not its exit event: some of its output may arrive later
  const exited = once(child, "close");
  let message = "";
  child.stdout.on("data", (chunk: Buffer) => {
    message += chunk;
    if (message.split("\n").length > entries) child.kill("SIGKILL");
  });
  expect(await exited).toEqual([null, "SIGKILL"]);
  const count = (word: string): number => message.split("\n").filter((line) => line === word).length;
  return { kept: count("kept"), taken: count("taken") };
}

test.each([40, 173, 301])(
  "after kill -9 all kept entries are there, in order and without duplicates",
  async (entries) => {
    const { kept, taken } = await killedAfter(entries);
    expect(taken).toBeGreaterThan(5);
    const found = onDisk();
    const [first = Number.NaN, last = Number.NaN] = [found[0], found.at(-1)];
    expect(found).toEqual(Array.from({ length: last - first + 1 }, (_, i) => first + i));
    expect(last).toBeGreaterThanOrEqual(kept - 1);
    // a removed entry may appear again, but an entry that was not removed is never lost: the kill happened in the next
    // call at the latest
    expect(first).toBeLessThanOrEqual(taken + 1);
  },
);
