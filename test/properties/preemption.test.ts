import { describe, expect, it } from "vitest";
import { decideByAdmitHandlers } from "../../api/decide/kinds/admission.ts";
import { preemptFor } from "../../api/decide/preemption/handler.ts";
import { isCriticalPod } from "../../api/decide/resources/qos.ts";
import type { WouldRefuse } from "../../api/model/admission.ts";
import type { Pod } from "../../api/model/pod.ts";
import type { Preemption, Shortage } from "../../api/model/preemption.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { container } from "../kit/containers.ts";
import { decodedPod, namedPod, requesting } from "../kit/pods.ts";
import { decoded, type Json } from "../kit/snapshots.ts";
import { type Draws, draws, Met, shuffled } from "./draws.ts";
import { randomPod } from "./random-pod.ts";

interface Case {
  readonly preemptor: Pod;
  readonly pods: readonly Pod[];
  readonly shortages: readonly Shortage[];
}
const RESOURCES = ["pods", "cpu", "memory"];
const PRIORITIES = [0, 5, 2_000_000_000, 2_000_000_500, 2_000_001_000];

/** A pod of any kind, with the given priority. */
function anyPod(name: string, d: Draws, priority: number | undefined): Pod {
  const pod = randomPod(name, d) as { spec: Json };
  // a pod with pod-level resources covers any need, so most pods here have none
  const { priority: _drawn, resources, ...rest } = pod.spec;
  const spec = d.chance(8) ? { ...rest, resources } : rest;
  return decodedPod({ ...pod, spec: { ...spec, ...(priority === undefined ? {} : { priority }) } });
}
/** A small Burstable or a larger Guaranteed pod, as on most nodes. */
function plainPod(name: string, d: Draws, priority: number | undefined): Pod {
  const guaranteed = d.chance(3);
  const requests = { cpu: `${d.below(guaranteed ? 6000 : 1500)}m`, memory: `${d.below(4096)}Mi` };
  const containers = [container("c", requests, guaranteed ? requests : undefined)];
  return decodedPod(namedPod(name, containers, priority === undefined ? {} : { priority }));
}
function caseOf(seed: number): Case {
  const d = draws(seed);
  const makes = d.chance(2) ? anyPod : plainPod;
  const pods = Array.from({ length: 1 + d.below(25) }, (_, i) =>
    makes(`p${i}`, d, d.chance(4) ? undefined : d.pick(PRIORITIES)),
  );
  const shortages = RESOURCES.filter(() => d.chance(2)).map((resource): Shortage => {
    const lacks =
      resource === "pods"
        ? 1 + d.below(2)
        : resource === "cpu"
          ? 1 + d.below(d.pick([4000, 12_000, 60_000]))
          : 1 + d.spread(2 ** 36);
    const used = 1 + d.below(1000);
    return { resource, requested: lacks + 10, used, capacity: used + 10 };
  });
  return { preemptor: anyPod("asking", d, d.pick([2_000_000_000, 2_000_000_400])), pods, shortages };
}
const decide = ({ preemptor, pods, shortages }: Case): Preemption => preemptFor(preemptor, pods, shortages);
const freed = ({ preempt }: Preemption, resource: string): number =>
  preempt.reduce((sum, { frees }) => sum + (frees.find((f) => f.resource === resource)?.quantity ?? 0), 0);

describe("preemption victims on random nodes", () => {
  it("free what is needed, are candidates, and alternatives called better are better", () => {
    const met = new Met();
    for (let seed = 1; seed <= 1500; seed++) {
      const given = caseOf(seed);
      const answer = decide(given);
      met.note("an error", answer.error !== null);
      met.note("several victims", answer.preempt.length > 2);
      if (answer.error !== null) {
        expect(answer.preempt, `seed ${seed}`).toEqual([]);
        continue;
      }
      for (const { resource, quantity } of answer.need) {
        expect(freed(answer, resource), `seed ${seed} ${resource}`).toBeGreaterThanOrEqual(quantity);
      }
      const own = given.preemptor.spec.priority ?? 0;
      for (const { uid, priority } of answer.preempt) {
        const pod = given.pods.find((p) => p.metadata.uid === uid) as Pod;
        met.note("a critical victim", isCriticalPod(pod));
        expect(isCriticalPod(pod) && (priority === null || priority >= own), `seed ${seed} ${uid}`).toBe(false);
      }
      checkBetter(answer, met, seed);
    }
    expect(met.hardly(20)).toEqual([]);
  });
  it("are the same when asked again, and for any order of pods without ties", () => {
    const met = new Met();
    for (let seed = 1; seed <= 300; seed++) {
      const given = caseOf(seed);
      const answer = decide(given);
      expect(decide(given), `seed ${seed}`).toEqual(answer);
      const isTied = answer.rounds.some(({ picks }) => picks.some(({ tied }) => tied.length > 0));
      const other = decide({ ...given, pods: shuffled(given.pods, draws(seed)) });
      met.note("several victims without a tie", !isTied && answer.preempt.length > 1);
      if (!isTied) expect(other.preempt, `seed ${seed}`).toEqual(answer.preempt);
      expect(other.error, `seed ${seed}`).toBe(answer.error);
    }
    expect(met.hardly(20)).toEqual([]);
  });
});

function checkBetter({ better, preempt, need }: Preemption, met: Met, seed: number): void {
  if (better === null) return;
  const { fewestPods, leastRequests } = better;
  met.note("fewer pods would do", fewestPods !== null && fewestPods.pods.length < preempt.length);
  met.note("smaller pods would do", leastRequests !== null);
  if (fewestPods !== null) expect(fewestPods.pods.length, `seed ${seed}`).toBeLessThanOrEqual(preempt.length);
  for (const set of [fewestPods, leastRequests]) {
    for (const { resource, quantity } of set === null ? [] : need) {
      const free = set?.frees.find((f) => f.resource === resource)?.quantity;
      expect(free, `seed ${seed} ${resource}`).toBeGreaterThanOrEqual(quantity);
    }
  }
}

interface Question {
  readonly snapshot: Json;
  readonly pod: Json;
}
type Fault = (q: { node: Json; metadata: Json; status: Json; parts: Json; requests: Json; spec: Json }) => void;
/** Each of these alone makes the kubelet refuse a pod that is not critical. */
const FAULTS: readonly Fault[] = [
  ({ status }) => (status["conditions"] = [{ type: "DiskPressure", status: "True" }]),
  ({ spec }) => (spec["securityContext"] = { sysctls: [{ name: "vm.swappiness" }, { name: "net.core.somaxconn" }] }),
  ({ spec }) => (spec["os"] = { name: "windows" }),
  ({ requests }) => (requests["cpu"] = "9"),
  ({ requests }) => (requests["memory"] = "9Gi"),
  ({ requests }) => (requests["hugepages-2Mi"] = "2Mi"),
  ({ spec }) => (spec["nodeSelector"] = { zone: "b" }),
  ({ spec }) => (spec["nodeName"] = "m"),
  ({ node }) => (node["spec"] = { taints: [{ key: "k", effect: "NoExecute" }] }),
  ({ parts }) => (parts["kubelet"] = { shuttingDown: true }),
  ({ status }) => (status["allocatable"] = { cpu: "4", memory: "8Gi", pods: "0" }),
];
function question(faults: readonly Fault[]): Question {
  const metadata = { name: "n", labels: { zone: "a" } };
  const status: Json = { allocatable: { cpu: "4", memory: "8Gi", pods: "10" }, conditions: [] };
  const q = { node: {} as Json, metadata, status, parts: {} as Json, requests: { cpu: "1" } as Json, spec: {} as Json };
  for (const fault of faults) fault(q);
  const { requests, spec } = q;
  return {
    snapshot: { node: { metadata, status, ...q.node }, pods: [], ...q.parts },
    pod: requesting("p", requests, spec),
  };
}
function wouldRefuse(faults: readonly Fault[]): readonly WouldRefuse[] {
  const { snapshot, pod } = question(faults);
  const answer = decideByAdmitHandlers({
    snapshot: effectiveSnapshot(decoded(snapshot)),
    facts: {},
    ask: { pod: decodedPod(pod) },
    explain: "off",
  });
  if (!answer.ok) throw new Error(answer.error.message);
  expect(answer.value.decision.admit).toBe(answer.value.decision.wouldRefuse.length === 0);
  return answer.value.decision.wouldRefuse;
}

describe("random combinations of refusal reasons", () => {
  const textOf = ({ handler, reason, message }: WouldRefuse): string => `${handler} ${reason} ${message}`;
  it("give the same reasons together as each does alone", () => {
    const alone = FAULTS.map((fault) => wouldRefuse([fault]).map(textOf));
    expect(alone.map((list) => list.length)).toEqual([1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    for (let seed = 1; seed <= 300; seed++) {
      const d = draws(seed);
      const drawn = FAULTS.map((fault, i) => ({ fault, i })).filter(() => d.chance(2));
      const together = wouldRefuse(drawn.map(({ fault }) => fault));
      expect(together.map(textOf).sort(), `seed ${seed}`).toEqual(drawn.flatMap(({ i }) => alone[i] ?? []).sort());
      expect(together.map(({ shown }) => shown)).toEqual(together.map((_, i) => i === 0));
    }
  });
});
