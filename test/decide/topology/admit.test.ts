import { describe, expect, test } from "vitest";
import { err, ok } from "../../../api/base/result.ts";
import { type Admission, admitPod, type NamedProvider, placementOf } from "../../../api/decide/topology/admit.ts";
import { type AllocateError, numaNodes } from "../../../api/decide/topology/hint.ts";
import type { AligningPolicy, TopologyPolicy } from "../../../api/decide/topology/policy.ts";
import type { Pod } from "../../../api/model/pod.ts";
import { container } from "../../kit/containers.ts";
import { decodedPod, podOf } from "../../kit/pods.ts";
import { countedProvider } from "./counted-provider.ts";

interface Asked {
  readonly cpu?: number;
  readonly gpu?: number;
}
const containersAsking = (all: Readonly<Record<string, Asked>>) =>
  Object.entries(all).map(([name, { cpu, gpu }]) =>
    container(name, undefined, { ...(cpu && { cpu: `${cpu}` }), ...(gpu && { "example.com/gpu": `${gpu}` }) }),
  );
const podAsking = (init: Readonly<Record<string, Asked>>, app: Readonly<Record<string, Asked>>): Pod =>
  decodedPod(podOf(containersAsking(app), { initContainers: containersAsking(init) }));

/** Two nodes of 4 CPUs and 2 GPUs, with the given free amounts. */
const machine = (cpus: number[], gpus: number[]): readonly NamedProvider[] => [
  countedProvider({ name: "devices", resource: "example.com/gpu", sizes: [2, 2], free: gpus }),
  countedProvider({ name: "cpus", resource: "cpu", sizes: [4, 4], free: cpus }),
];
const policy = (name: AligningPolicy["name"], scope: AligningPolicy["scope"] = "container"): AligningPolicy => ({
  name,
  scope,
  numa: numaNodes([0, 1]),
  distances: null,
});
function admit(by: TopologyPolicy, providers: readonly NamedProvider[], pod: Pod): Admission {
  const admission = admitPod(by, providers, pod);
  if (!admission.ok) throw new Error(admission.error.message);
  return admission.value;
}
const failing = (name: string, error: AllocateError): NamedProvider => ({
  name,
  provider: { containerHints: () => new Map(), podHints: () => new Map(), allocate: () => err(error) },
});
const LOCALITY = { reason: "TopologyAffinityError", message: "Resources cannot be allocated with Topology locality" };

describe("topology admission with container scope", () => {
  test("asks for hints of each container after the one before it is allocated", () => {
    const cpus = [4, 4];
    const gpus = [1, 2];
    const pod = podAsking({ init: { cpu: 1 } }, { a: { cpu: 3, gpu: 1 }, b: { cpu: 4 } });
    const { merges, allocated, refusal } = admit(policy("single-numa-node"), machine(cpus, gpus), pod);
    expect(refusal).toBeNull();
    expect(merges.map(({ container, merged }) => [container, merged])).toEqual([
      ["init", { nodes: 1, preferred: true }],
      ["a", { nodes: 1, preferred: true }],
      ["b", { nodes: 2, preferred: true }],
    ]);
    expect(allocated).toEqual(["init", "a", "b"].map((name) => ({ container: name, by: ["devices", "cpus"] })));
    expect({ cpus, gpus }).toEqual({ cpus: [0, 0], gpus: [0, 2] });
  });

  test("refuses at the container that cannot be aligned, and earlier ones keep their resources", () => {
    const cpus = [4, 4];
    const pod = podAsking({}, { a: { cpu: 3 }, b: { cpu: 3 }, c: { cpu: 2 } });
    const { merges, allocated, refusal } = admit(policy("restricted"), machine(cpus, [2, 2]), pod);
    expect(refusal).toEqual({ ...LOCALITY, container: "c" });
    expect(merges.map(({ container, admitted }) => [container, admitted])).toEqual([
      ["a", true],
      ["b", true],
      ["c", false],
    ]);
    expect(allocated.map(({ container }) => container)).toEqual(["a", "b"]);
    expect(cpus).toEqual([1, 1]);
  });

  test("admits the same pod under best-effort, spread over both NUMA nodes", () => {
    const cpus = [4, 4];
    const pod = podAsking({}, { a: { cpu: 3 }, b: { cpu: 3 }, c: { cpu: 2 } });
    const { merges, refusal } = admit(policy("best-effort"), machine(cpus, [2, 2]), pod);
    expect(refusal).toBeNull();
    expect(merges[2]).toMatchObject({ merged: { nodes: 3, preferred: false }, admitted: true });
    expect(cpus).toEqual([0, 0]);
  });
});

describe("topology admission with pod scope", () => {
  test("merges hints once for the pod and allocates every container by the result", () => {
    const cpus = [2, 4];
    const pod = podAsking({ init: { cpu: 2 } }, { a: { cpu: 1 }, b: { cpu: 2 } });
    const { merges, allocated, refusal } = admit(policy("restricted", "pod"), machine(cpus, [2, 2]), pod);
    expect(refusal).toBeNull();
    expect(merges).toMatchObject([{ container: null, merged: { nodes: 2, preferred: true }, admitted: true }]);
    expect(allocated).toHaveLength(3);
    expect(cpus).toEqual([1, 0]); // this provider does not reuse the init container's CPUs
  });

  test("refuses the pod before anything is allocated", () => {
    const cpus = [3, 3];
    const pod = podAsking({}, { a: { cpu: 2 }, b: { cpu: 2 } });
    const { allocated, refusal } = admit(policy("single-numa-node", "pod"), machine(cpus, [2, 2]), pod);
    expect(refusal).toEqual({ ...LOCALITY, container: null });
    expect(allocated).toEqual([]);
    expect(cpus).toEqual([3, 3]);
    expect(admit(policy("single-numa-node"), machine(cpus, [2, 2]), pod).refusal).toBeNull();
  });
});

describe("a resource manager that refuses", () => {
  const pod = podAsking({}, { a: { gpu: 1 }, b: { gpu: 1 } });
  const message = "not enough cpus available to satisfy request: requested=2, available=1";
  const scopes: readonly TopologyPolicy[] = [{ name: "none" }, policy("best-effort"), policy("restricted", "pod")];
  test.each(scopes)("gives UnexpectedAdmissionError when its error has no reason of its own: %j", (by) => {
    const gpus = [2, 2];
    const [devices] = machine([4, 4], gpus) as [NamedProvider];
    const { allocated, refusal } = admit(by, [devices, failing("cpus", { message })], pod);
    expect(refusal).toEqual({
      reason: "UnexpectedAdmissionError",
      message: `Allocate failed due to ${message}, which is unexpected`,
      container: "a",
    });
    expect(allocated).toEqual([{ container: "a", by: ["devices"] }]);
    expect(gpus.reduce((a, b) => a + b)).toBe(3);
  });
  test.each(scopes)("gives its own reason when its error has one: %j", (by) => {
    const smt = {
      reason: "SMTAlignmentError",
      message: "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
    };
    expect(admit(by, [failing("cpus", smt)], pod).refusal).toEqual({ ...smt, container: "a" });
  });
});

describe("topology policy none", () => {
  test("asks for no hints, and allocates from any NUMA node", () => {
    const cpus = [3, 3];
    const { merges, refusal } = admit(
      { name: "none" },
      machine(cpus, [2, 2]),
      podAsking({ i: { cpu: 1 } }, { a: { cpu: 4 } }),
    );
    expect(merges).toEqual([]);
    expect(refusal).toBeNull();
    expect(cpus).toEqual([0, 1]);
  });
});

describe("a pod with pod-level resources and PodLevelResourceManagers", () => {
  const plain = podAsking({}, { a: { cpu: 4 }, b: { cpu: 4 } });
  const leveled: Pod = {
    ...plain,
    spec: { ...plain.spec, resources: { limits: plain.spec.containers[0]?.resources?.limits } },
  };
  const outcome = (by: TopologyPolicy, providers: readonly NamedProvider[], pod: Pod): Admission => {
    const admission = admitPod(by, providers, pod, true);
    if (!admission.ok) throw new Error(admission.error.message);
    return admission.value;
  };
  const reason = "TopologyAffinityError";

  test("is refused with a message of its own in either scope", () => {
    const each = outcome(policy("restricted"), machine([3, 3], []), leveled);
    expect(each.refusal).toEqual({
      reason,
      message: "Pod Scope pod with pod-level resources failed admission with a container-level topology manager",
      container: "a",
    });
    const whole = outcome(policy("single-numa-node", "pod"), machine([3, 3], []), leveled);
    expect(whole.refusal).toEqual({
      reason,
      message: "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager",
      container: null,
    });
    expect(outcome(policy("restricted"), machine([3, 3], []), plain).refusal).toEqual({ ...LOCALITY, container: "a" });
  });

  test("is allocated as a whole under pod scope by the managers that support it", () => {
    const asked: unknown[] = [];
    const whole: NamedProvider = {
      name: "memory",
      provider: {
        containerHints: () => new Map(),
        podHints: () => new Map([["memory", [{ nodes: 2, preferred: true }]]]),
        allocate: () => err({ message: "asked for a container" }),
        allocatePod: (_pod, affinity) => {
          asked.push(affinity);
          return ok(undefined);
        },
      },
    };
    const cpus = [4, 4];
    const [devices] = machine(cpus, [2, 2]) as [NamedProvider];
    const { allocated, refusal } = outcome(policy("best-effort", "pod"), [devices, whole], leveled);
    expect(refusal).toBeNull();
    expect(allocated).toEqual([{ container: null, by: ["devices", "memory"] }]);
    expect(asked).toEqual([{ nodes: 2, preferred: true }]);
    const { refusal: unleveled } = outcome(policy("best-effort", "pod"), [devices, whole], plain);
    expect(unleveled?.message).toBe("Allocate failed due to asked for a container, which is unexpected");
  });

  test("keeps what earlier managers allocated when a later one refuses", () => {
    const empty = { reason: "EmptyPodSharedPoolError", message: "no CPU is left" };
    const refusing: NamedProvider = {
      name: "cpus",
      provider: { ...failing("cpus", empty).provider, allocatePod: () => err(empty) },
    };
    const [devices] = machine([4, 4], [2, 2]) as [NamedProvider];
    const { allocated, refusal } = outcome(policy("best-effort", "pod"), [devices, refusing], leveled);
    expect(refusal).toEqual({ ...empty, container: null });
    expect(allocated).toEqual([{ container: null, by: ["devices"] }]);
  });
});

describe("a merge of hints as a decision shows it", () => {
  test("names NUMA nodes by the machine's ids", () => {
    const numa = numaNodes([4, 0]);
    const pod = podAsking({}, { a: { cpu: 2, gpu: 3 } });
    const { merges } = admit({ ...policy("best-effort"), numa }, machine([1, 4], [1, 1]), pod);
    expect(merges.map((merge) => placementOf(numa, merge))).toEqual([
      {
        container: "a",
        hints: {
          "example.com/gpu": [],
          cpu: [
            { numaNodes: [4], preferred: true },
            { numaNodes: [0, 4], preferred: false },
          ],
        },
        cutShort: [],
        merged: { numaNodes: [4], preferred: false },
        admitted: true,
      },
    ]);
  });
  test("distinguishes no preference, any node and a list of nodes", () => {
    const turn = {
      container: null,
      hints: [new Map([["cpu", null]])],
      merged: { nodes: null, preferred: true },
      admitted: true,
    };
    expect(placementOf(numaNodes([0]), turn)).toEqual({
      container: null,
      hints: { cpu: null },
      cutShort: [],
      merged: { numaNodes: null, preferred: true },
      admitted: true,
    });
  });
});
