import { describe, expect, test } from "vitest";
import type { PodEvent } from "../../../actuator/lifecycle/record.ts";
import { EventRing } from "../../../actuator/status/events.ts";

const at = (seconds: number): string => new Date(1_700_000_000_000 + seconds * 1000).toISOString();
const event = (message: string, seconds = 0, changes: Partial<PodEvent> = {}): PodEvent => ({
  at: at(seconds),
  type: "Warning",
  reason: "BackOff",
  message,
  pod: { namespace: "shop", name: "web", uid: "u1" },
  container: "app",
  ...changes,
});

describe("EventRing", () => {
  test("counts equal events, and moves them to the end", () => {
    const ring = new EventRing();
    ring.add(event("a"));
    ring.add(event("b", 1));
    expect(ring.add(event("a", 30))).toMatchObject({ count: 2, firstAt: at(0), at: at(30) });
    expect(ring.list().map(({ message, count }) => [message, count])).toEqual([
      ["b", 1],
      ["a", 2],
    ]);
  });

  test("keeps events apart by container, reason, type and uid", () => {
    const ring = new EventRing();
    ring.add(event("a"));
    ring.add(event("a", 0, { container: null }));
    ring.add(event("a", 0, { reason: "Failed" }));
    ring.add(event("a", 0, { type: "Normal" }));
    ring.add(event("a", 0, { pod: { namespace: "shop", name: "web", uid: "u2" } }));
    expect(ring.list().map(({ count }) => count)).toEqual([1, 1, 1, 1, 1]);
  });

  test("combines similar events from the tenth within ten minutes on", () => {
    const ring = new EventRing();
    for (let i = 0; i < 9; i++) expect(ring.add(event(`message ${i}`, i)).message).toBe(`message ${i}`);
    expect(ring.add(event("message 9", 9))).toMatchObject({
      message: "(combined from similar events): message 9",
      count: 1,
      firstAt: at(9),
    });
    expect(ring.add(event("message 10", 10))).toMatchObject({
      message: "(combined from similar events): message 10",
      count: 2,
      firstAt: at(9),
    });
    expect(ring.list()).toHaveLength(10);
    expect(ring.add(event("message 11", 10 + 600)).count).toBe(3);
    expect(ring.add(event("message 12", 10 + 600 + 601)).message).toBe("message 12");
  });

  test("drops the oldest events beyond 1000, and reports how many", () => {
    let dropped = 0;
    const ring = new EventRing([], (count) => {
      dropped += count;
    });
    for (let i = 0; i < 1203; i++) ring.add(event("m", i, { pod: { namespace: "n", name: `p${i}`, uid: `u${i}` } }));
    expect(dropped).toBe(203);
    expect(ring.list()).toHaveLength(1000);
    expect(ring.list()[0]?.pod.name).toBe("p203");
  });

  test("keeps counting events of an earlier process", () => {
    const first = new EventRing();
    first.add(event("a"));
    const second = new EventRing(first.list());
    expect(second.add(event("a", 60))).toMatchObject({ count: 2, firstAt: at(0) });
  });

  test("cuts long messages", () => {
    expect(new EventRing().add(event("x".repeat(1_000_000))).message).toHaveLength(4096);
  });
});
