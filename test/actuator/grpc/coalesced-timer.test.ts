import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { CoalescedTimer } from "../../../actuator/grpc/watched-directory.ts";

test("the timer fires once, even if it is requested again and again before", async () => {
  let rings = 0;
  const alarm = new CoalescedTimer(() => rings++);
  for (const until = performance.now() + 10_000; rings === 0 && performance.now() < until; await sleep(1)) alarm.in(50);
  expect(rings).toBe(1);
  alarm.stop();
});
test("the earliest request counts, and a stopped timer never fires", async () => {
  let rings = 0;
  const alarm = new CoalescedTimer(() => rings++);
  alarm.in(600_000);
  alarm.in(1);
  await expect.poll(() => rings, { timeout: 10_000 }).toBe(1);
  alarm.in(1);
  alarm.stop();
  alarm.in(1);
  await sleep(100);
  expect(rings).toBe(1);
});
