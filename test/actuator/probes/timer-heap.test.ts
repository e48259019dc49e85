import { expect, test } from "vitest";
import { ProbeSlots } from "../../../actuator/probes/engine/engine.ts";
import { TimerHeap, type TimerItem } from "../../../actuator/probes/engine/probe-time.ts";
import { draws } from "../cgroups/draws.ts";
import { StillClock } from "./manager-kit.ts";

interface Item extends TimerItem {
  readonly name: number;
}
const item = (name: number): Item => ({ name, dueMs: 0, at: -1 });
function opened() {
  const clock = new StillClock();
  const woken: [number, number][] = [];
  const now = () => clock.sinceStart;
  const wakes = new TimerHeap<Item>({ now }, clock.after, ({ name }) => void woken.push([name, now()]));
  return { clock, woken, wakes };
}

test("each item is woken once, at its newest time and in order, with one timer for all", async () => {
  const { clock, woken, wakes } = opened();
  const random = draws(7);
  const items = Array.from({ length: 500 }, (_, i) => item(i));
  for (const one of items) wakes.set(one, random.below(10_000));
  for (const one of items.filter((_, i) => i % 3 === 0)) wakes.set(one, random.below(10_000));
  for (const one of items.filter((_, i) => i % 5 === 0)) wakes.remove(one);
  expect(clock.timers).toBe(1);
  await clock.advance(11_000);
  const left = items.filter((_, i) => i % 5 !== 0);
  expect(woken.map(([name]) => name).sort((a, b) => a - b)).toEqual(left.map(({ name }) => name));
  for (const [name, atMs] of woken) {
    const late = atMs - (items[name]?.dueMs ?? 0);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThanOrEqual(5);
  }
  const due = woken.map(([name]) => items[name]?.dueMs ?? 0);
  expect(due).toEqual(due.toSorted((a, b) => a - b));
  expect([wakes.size, clock.timers]).toEqual([0, 0]);
});

test("items due close together are woken together, and large crowds in parts", async () => {
  const { clock, woken, wakes } = opened();
  for (const [name, dueMs] of [10, 11, 12, 14, 30].entries()) wakes.set(item(name), dueMs);
  await clock.advance(40);
  expect(woken.map(([, at]) => at)).toEqual([10, 15, 15, 15, 30]);
  woken.length = 0;
  for (let i = 0; i < 300; i++) wakes.set(item(i), 50);
  await clock.advance(100);
  const at = [...new Set(woken.map(([, ms]) => ms))];
  expect(at.map((ms) => woken.filter(([, one]) => one === ms).length)).toEqual([128, 128, 44]);
  expect(at[2]).toBeLessThanOrEqual(60);
});

test("an earlier item moves the timer forward, and a closed heap wakes nothing", async () => {
  const { clock, woken, wakes } = opened();
  wakes.set(item(1), 1_000);
  wakes.set(item(2), 100);
  await clock.advance(500);
  expect(woken).toEqual([[2, 100]]);
  wakes.close();
  await clock.advance(5_000);
  expect([woken.length, clock.timers, wakes.size]).toEqual([1, 0, 0]);
});

test("ProbeSlots gives out the lowest free slot of each period", () => {
  const phases = new ProbeSlots();
  expect([1, 2, 3].map(() => phases.take(1_000))).toEqual([0, 1, 2]);
  expect(phases.take(2_000)).toBe(0);
  phases.give(1_000, 0);
  phases.give(1_000, 1);
  expect([1, 2, 3].map(() => phases.take(1_000))).toEqual([0, 1, 3]);
});
