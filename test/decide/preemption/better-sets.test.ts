import { describe, expect, it } from "vitest";
import { cheapestItems } from "../../../api/decide/preemption/handler.ts";
import {
  costOf,
  fewestItems,
  type Item,
  isFree,
  less,
  type Selection,
} from "../../../api/decide/preemption/minimal-victims.ts";
import { type Draws, draws } from "../../properties/draws.ts";
import { admitted, boundPod, CRITICAL, readyNode } from "../admission/admission-kit.ts";

/** Every set of items that covers the need. */
function everyCover(need: readonly number[], items: readonly Item[]): Selection[] {
  const covers: Selection[] = [];
  for (let mask = 1; mask < 2 ** items.length; mask++) {
    const taken = items.filter((_, i) => (mask >> i) & 1);
    const rest = taken.reduce<readonly number[]>((left, item) => less(left, item), need);
    if (isFree(rest)) covers.push({ items: taken, cost: taken.reduce((sum, { cost }) => sum + cost, 0) });
  }
  return covers;
}
const least = (covers: readonly Selection[], of: (c: Selection) => number): number => Math.min(...covers.map(of));

function drawn(d: Draws): { need: number[]; weights: number[]; items: Item[] } {
  const need = Array.from({ length: 1 + d.below(3) }, () => 1 + d.below(40));
  const weights = need.map((amount) => 1 / amount);
  const items = Array.from({ length: 3 + d.below(8) }, (_, index): Item => {
    const frees = need.map(() => d.below(d.chance(3) ? 30 : 12));
    return { index, frees, cost: costOf(weights, frees) };
  });
  return { need, weights, items };
}

describe("the search for better victim sets", () => {
  it("finds what trying every set finds", () => {
    let possible = 0;
    for (let seed = 1; seed <= 400; seed++) {
      const { need, weights, items } = drawn(draws(seed));
      const covers = everyCover(need, items);
      const known = covers.at(-1);
      if (known === undefined) continue;
      possible++;
      const byNumber = fewestItems(need, items, known, 1e6);
      const size = least(covers, (c) => c.items.length);
      const cheapestOfSize = least(
        covers.filter((c) => c.items.length === size),
        (c) => c.cost,
      );
      expect([byNumber.exact, byNumber.cover.items.length], `seed ${seed}`).toEqual([true, size]);
      expect(byNumber.cover.cost, `seed ${seed}`).toBeCloseTo(cheapestOfSize, 9);
      const byCost = cheapestItems(need, weights, items, known, 1e6);
      const cost = least(covers, (c) => c.cost);
      const smallest = least(
        covers.filter((c) => c.cost <= cost + 1e-9),
        (c) => c.items.length,
      );
      expect(byCost.exact, `seed ${seed}`).toBe(true);
      expect(byCost.cover.cost, `seed ${seed}`).toBeCloseTo(cost, 9);
      expect(byCost.cover.items.length, `seed ${seed}`).toBe(smallest);
    }
    expect(possible).toBeGreaterThan(250);
  });
  it("reports that it was cut short, with the best set so far", () => {
    const items = Array.from(
      { length: 40 },
      (_, index): Item => ({ index, frees: [1000 + ((index * 37) % 91)], cost: (1000 + ((index * 37) % 91)) / 9001 }),
    );
    const known = { items: items.slice(0, 9), cost: items.slice(0, 9).reduce((sum, { cost }) => sum + cost, 0) };
    expect(cheapestItems([9001], [1 / 9001], items, known, 5)).toMatchObject({ exact: false });
    expect(fewestItems([9001], items, known, 2)).toMatchObject({ exact: false, cover: known });
  });
});

describe("alternatives to the kubelet's victims", () => {
  const ofFiveCpus = (pods: Record<string, unknown>[]) =>
    readyNode({ pods }, { allocatable: { cpu: "5", memory: "8Gi", pods: "10" } });
  it("include smaller pods that would suffice", () => {
    const pods = [boundPod("big", { cpu: "4" }), boundPod("s1", { cpu: "500m" }), boundPod("s2", { cpu: "500m" })];
    const { decision } = admitted(ofFiveCpus(pods), boundPod("p", { cpu: "1" }, CRITICAL));
    expect(decision.preempt.map(({ name }) => name)).toEqual(["big"]);
    expect(decision.preemption?.better).toMatchObject({
      fewestPods: null,
      leastRequests: { cost: 1, frees: [{ resource: "cpu", quantity: 1000 }] },
      exact: { fewestPods: true, leastRequests: true },
    });
    expect(decision.counterfactuals[0]).toEqual({
      code: "smaller_pods_would_do",
      numbers: {
        pods: "default/s1 default/s2",
        count: 2,
        kubelet: "default/big",
        kubeletCount: 1,
        exact: true,
        "cpu needed": 1000,
        "cpu freed": 1000,
        "cpu freed by the kubelet": 4000,
      },
    });
  });
  it("include fewer pods, whatever their QoS class", () => {
    const big = { containers: [{ name: "c", resources: { limits: { cpu: "2", memory: "1Gi" } } }] };
    const pods = [boundPod("g", {}, big), boundPod("b1", { cpu: "1500m" }), boundPod("b2", { cpu: "1500m" })];
    const { decision } = admitted(ofFiveCpus(pods), boundPod("p", { cpu: "2" }, CRITICAL));
    expect(decision.preempt.map(({ name }) => name)).toEqual(["b2", "b1"]);
    expect(decision.preemption?.better?.fewestPods?.pods.map(({ name, qos }) => [name, qos])).toEqual([
      ["g", "Guaranteed"],
    ]);
    expect(decision.counterfactuals.map(({ code }) => code)).toEqual([
      "fewer_pods_would_do",
      "smaller_pods_would_do",
      "lower_request_spares_all",
    ]);
  });
  it("are absent when the kubelet's choice is as good", () => {
    const { decision } = admitted(
      ofFiveCpus([boundPod("a", { cpu: "3" }), boundPod("b", { cpu: "2" })]),
      boundPod("p", { cpu: "2" }, CRITICAL),
    );
    expect(decision.preempt.map(({ name }) => name)).toEqual(["b"]);
    expect(decision.preemption?.better).toMatchObject({ fewestPods: null, leastRequests: null });
  });
});
