import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import { scratchFolder } from "../kit/scratch.ts";

const START = Date.parse("2026-01-01T10:00:00Z");
const HOUR = 3_600_000;
const iso = (ms: number): string => new Date(ms).toISOString();
const facts = (atMs: number) => ({ atMs, beganAtMs: 0, failed: false, records: [], removed: [] });

function remembering(): () => FactsStore {
  const directory = scratchFolder();
  return () => new FactsStore(directory, (message) => expect.unreachable(message));
}

test("a pass after the clock was set back gets the last facts and stores its own; a repeated one gets the same", () => {
  const memory = remembering();
  const back = START + 10_000 - 2 * HOUR;
  const stepped = { observedAt: iso(back), bootId: "b", clockSteppedMs: -2 * HOUR, clockSteppedSince: iso(START) };
  memory().persist("image-gc", { observedAt: iso(START - HOUR), bootId: "b" }, facts(START - HOUR));
  memory().persist("image-gc", { observedAt: iso(START), bootId: "b" }, facts(START));
  expect(memory().factsFor("image-gc", stepped)).toEqual(facts(START));
  memory().persist("image-gc", stepped, facts(back));
  expect(memory().factsFor("image-gc", stepped)).toEqual(facts(START));
  memory().persist("image-gc", stepped, { ...facts(back), failed: true });
  expect(memory().factsFor("image-gc", stepped)).toEqual(facts(START));
  // later passes start from these facts, whether or not the time of that pass was stored
  const after = { ...stepped, observedAt: iso(back + 10_000) };
  for (const next of [after, { observedAt: after.observedAt, bootId: "b" }])
    expect(memory().factsFor("image-gc", next)).toEqual({ ...facts(back), failed: true });
});

test("facts that cannot be written are reported with the consequence, and kept in memory", () => {
  const directory = scratchFolder();
  const file = join(directory, "facts-image-gc.json");
  mkdirSync(file);
  const messages: string[] = [];
  const memory = new FactsStore(directory, (message) => messages.push(message));
  messages.length = 0;
  memory.persist("image-gc", { observedAt: iso(START), bootId: "b" }, facts(START));
  expect(messages).toEqual([`${file}: EISDIR; what image-gc remembers would be lost by a restart`]);
  expect(memory.factsFor("image-gc", { observedAt: iso(START + 1000), bootId: "b" })).toEqual(facts(START));
});

test("a pass with an earlier time and no recorded clock step counts as late", () => {
  const memory = remembering();
  const back = { observedAt: iso(START + 10_000 - 2 * HOUR), bootId: "b" };
  memory().persist("image-gc", { observedAt: iso(START), bootId: "b" }, facts(START));
  memory().persist("image-gc", back, facts(START + 10_000 - 2 * HOUR));
  expect(memory().factsFor("image-gc", back)).toBeUndefined();
  expect(memory().factsFor("image-gc", { observedAt: iso(START + 1), bootId: "b" })).toEqual(facts(START));
});
