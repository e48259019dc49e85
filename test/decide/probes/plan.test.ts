import { expect, test } from "vitest";
import { nextAtPhase, type PlannedProbe, phaseOf, probePlan } from "../../../api/decide/probes/plan.ts";

const probe = (more: Partial<PlannedProbe> = {}): PlannedProbe => ({
  ...{ handler: "http", periodSeconds: 1, timeoutSeconds: 1, seconds: 0.5 },
  ...more,
});

test.each([2, 3, 10, 97, 1_000, 5_000])(
  "%d probe phases leave no large gap, however many of them are used",
  (count) => {
    const phases = Array.from({ length: count }, (_, i) => phaseOf(i, 1_000)).sort((a, b) => a - b);
    const gaps = phases.map((phase, i) => (phases[i + 1] ?? (phases[0] ?? 0) + 1_000) - phase);
    expect(Math.min(...phases)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...phases)).toBeLessThan(1_000);
    // a worse distribution could have three times the average gap
    expect(Math.max(...gaps)).toBeLessThan((2.7 * 1_000) / count);
    expect(Math.min(...gaps)).toBeGreaterThan((0.35 * 1_000) / count);
  },
);

test("the first phases of several periods are at different times", () => {
  const firsts = [1, 2, 3, 5, 10, 30].map((seconds) => phaseOf(0, seconds * 1_000) % 1_000);
  expect(new Set(firsts.map((ms) => Math.floor(ms / 20))).size).toBe(6);
});

test("the next time at a phase is not before now, and less than a period away", () => {
  for (const now of [0, 1, 999, 1_000, 1_300, 1_301, 123_456_789]) {
    const at = nextAtPhase(300, 1_000, 1_000, now);
    expect(at).toBeGreaterThanOrEqual(now);
    expect((at - 1_300) % 1_000).toBe(0);
    if (now > 1_300) expect(at - now).toBeLessThan(1_000);
  }
});

test("the probe plan of a node counts attempts per second, execs at once and coinciding probes", () => {
  const probes = [
    ...Array.from({ length: 500 }, () => probe()),
    ...Array.from({ length: 100 }, () => probe({ periodSeconds: 10, handler: "exec", timeoutSeconds: 5 })),
    probe({ handler: "tcp", periodSeconds: 4 }),
    probe({ handler: "grpc", periodSeconds: 5 }),
  ];
  const plan = probePlan(probes);
  expect(plan).toMatchObject({
    probes: 602,
    perSecond: { exec: expect.closeTo(10), http: 500, tcp: 0.25, grpc: 0.2 },
    execsAtOnce: { expected: expect.closeTo(5), hanging: expect.closeTo(50) },
  });
  expect(plan.maxAtOnce.unspread).toBe(602);
  expect(plan.maxAtOnce.spread).toBeGreaterThanOrEqual(51);
  expect(plan.maxAtOnce.spread).toBeLessThanOrEqual(58);
});

test("the probes that coincide with several periods are counted exactly", () => {
  const probes = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60].flatMap((periodSeconds, i) =>
    Array.from({ length: (i % 4) + 1 }, () => probe({ periodSeconds })),
  );
  const counts = Array<number>(600).fill(0);
  const numbers = new Map<number, number>();
  for (const { periodSeconds } of probes) {
    const number = numbers.get(periodSeconds) ?? 0;
    numbers.set(periodSeconds, number + 1);
    const first = Math.floor(phaseOf(number, periodSeconds * 1_000) / 100);
    for (let i = first; i < 600; i += periodSeconds * 10) counts[i] = (counts[i] ?? 0) + 1;
  }
  expect(probePlan(probes).maxAtOnce.spread).toBe(Math.max(...counts));
  expect(Math.max(...counts)).toBeGreaterThan(Math.max(...counts.slice(0, 10)));
});

test("periods that hardly ever coincide and very long ones are bounded without counting", () => {
  const odd = [3_571, 3_557, 2_147_483_647].map((periodSeconds) => probe({ periodSeconds }));
  expect(probePlan(odd).maxAtOnce.spread).toBe(3);
  expect(probePlan([])).toMatchObject({ probes: 0, maxAtOnce: { spread: 0, unspread: 0 } });
});

test("an exec probe that hangs longer than its period does not overlap itself", () => {
  const { execsAtOnce } = probePlan([probe({ handler: "exec", timeoutSeconds: 60, seconds: 30 })]);
  expect(execsAtOnce).toEqual({ expected: 1, hanging: 1 });
  const cut = probePlan([probe({ handler: "exec", periodSeconds: 10, timeoutSeconds: 1, seconds: 5 })]);
  expect(cut.execsAtOnce).toEqual({ expected: 0.1, hanging: 0.1 });
});
