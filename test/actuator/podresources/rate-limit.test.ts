import { expect, test } from "vitest";
import { rateLimit } from "../../../actuator/podresources/server.ts";

/** How many of `calls` simultaneous calls are allowed. */
const letThrough = (take: () => boolean, calls: number): number =>
  Array.from({ length: calls }, take).filter(Boolean).length;

test("ten calls pass at once, and one more every 10 ms", () => {
  let now = 5_000;
  const take = rateLimit(() => now);
  expect(letThrough(take, 15)).toBe(10);
  now += 9;
  expect(take()).toBe(false);
  now += 1;
  expect(letThrough(take, 2)).toBe(1);
  now += 55;
  expect(letThrough(take, 9)).toBe(5);
  now += 5;
  expect(letThrough(take, 2)).toBe(1);
});

test("unused calls do not accumulate beyond ten", () => {
  let now = 0;
  const take = rateLimit(() => now);
  now += 3_600_000;
  expect(letThrough(take, 50)).toBe(10);
});

test("a second of steady calls lets a hundred through besides the first ten", () => {
  let now = 0;
  const take = rateLimit(() => now);
  let through = 0;
  for (; now <= 1000; now++) through += letThrough(take, 15);
  expect(through).toBe(110);
});
