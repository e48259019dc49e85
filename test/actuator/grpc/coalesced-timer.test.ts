import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { CoalescedTimer } from "../../../actuator/grpc/watched-directory.ts";

test("an alarm rings although somebody asks for later again and again, once for all who asked", async () => {
  let rings = 0;
  const alarm = new CoalescedTimer(() => rings++);
  for (const until = performance.now() + 10_000; rings === 0 && performance.now() < until; await sleep(1)) alarm.in(50);
  expect(rings).toBe(1);
  alarm.stop();
});
test("the soonest of what was asked for counts, and nothing after it is stopped", async () => {
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
