import { describe, expect, test } from "vitest";
import { writeCpuState } from "../../../api/decide/cpus/checkpoint.ts";
import { type CpuManager, cpuManager } from "../../../api/decide/cpus/manager.ts";
import { freshState, startState } from "../../../api/decide/cpus/start.ts";
import { ANY_NODE } from "../../../api/decide/topology/hint.ts";
import { containersOf, type Pod } from "../../../api/model/pod.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { pod as bare, decodedPod } from "../../kit/pods.ts";
import { admit, cpuPod, evenMachine, policyOn, shown } from "./kit.ts";

/** Two sockets of eight threads each; CPU 0 reserved. */
const policy = policyOn(evenMachine({ sockets: 2, cores: 8 }));
const manager = (): CpuManager => cpuManager(policy, freshState(policy), true);

/** A pod with `cpu` pod-level CPUs; containers that ask for 0 have no resources of their own. */
function wholePod(cpu: number, asked: Readonly<Record<string, number>>): Pod {
  const pod = cpuPod("a", asked);
  for (const container of containersOf(pod)) if (asked[container.name] === 0) delete container.resources;
  const amounts = { cpu: String(cpu), memory: "8Gi" };
  const { resources } = decodedPod(bare("a", { spec: { resources: { requests: amounts, limits: amounts } } })).spec;
  return { ...pod, spec: { ...pod.spec, resources } };
}
const given = (m: CpuManager, pod: Pod) => {
  const answer = m.allocatePod(pod, ANY_NODE);
  return answer.ok ? undefined : answer.error;
};

describe("pod-level CPUs with the gate PodLevelResourceManagers", () => {
  const pod = wholePod(6, { "setup-init": 0, "log-side": 2, "late-init": 0, app: 2, more: 0 });
  test("give containers their exclusive CPUs first and share the rest among the others", () => {
    const m = manager();
    expect(given(m, pod)).toBeUndefined();
    expect(shown(m)).toEqual({
      "a/setup-init": "1-3,9-11",
      "a/log-side": "1,9",
      "a/late-init": "2-3,10-11",
      "a/app": "2,10",
      "a/more": "3,11",
      pool: "0,4-8,12-15",
    });
  });
  test("are freed with the pod's last container", () => {
    const m = manager();
    given(m, pod);
    for (const name of ["setup-init", "log-side", "late-init", "app"]) m.removeContainer("a", name);
    expect(shown(m)).toEqual({ "a/more": "3,11", pool: "0,4-8,12-15" });
    m.removeContainer("a", "more");
    expect(shown(m)).toEqual({ pool: "0-15" });
  });
  test("are written to a version 3 state file and read back", () => {
    const m = manager();
    given(m, wholePod(2, { app: 0 }));
    const form = { profile: v1_36, podLevel: true };
    const file = writeCpuState("static", m.state(), form);
    expect(file.replace(/\d+}$/, "}")).toBe(
      '{"policyName":"static","defaultCpuSet":"0,2-8,10-15","entries":{"a":{"app":"1,9"}},"podEntries":{"a":{"cpuSet":"1,9"}},"checksum":}',
    );
    expect(startState({ ...form, policy, file })).toEqual({ ok: true, value: m.state() });
    expect(startState({ ...form, policy, file, podLevel: false }).ok).toBe(false);
  });
  test("are refused with EmptyPodSharedPoolError when nothing is left to share", () => {
    const reason = "EmptyPodSharedPoolError";
    for (const [asked, message] of [
      [
        { app: 2, more: 0 },
        "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers",
      ],
      [
        { "log-side": 2, "late-init": 0, app: 1 },
        "pod rejected, pod has shared init containers but no cpus available for them",
      ],
    ] as const) {
      const m = manager();
      const whole = wholePod(2, asked);
      expect(given(m, whole)).toEqual({ reason, message });
      expect(m.podHints(whole)).toEqual(new Map([["cpu", []]]));
      expect(shown(m)).toEqual({ pool: "0-15" });
    }
    // all CPUs are exclusive: no container needs the shared pool
    expect(given(manager(), wholePod(2, { app: 2 }))).toBeUndefined();
  });
  test("are allocated per container under container scope", () => {
    const m = manager();
    expect(admit(m, wholePod(6, { app: 2, more: 0 }))).toBeUndefined();
    expect(shown(m)).toEqual({ "a/app": "1,9", pool: "0,2-8,10-15" });
  });
  test("are not allocated without the gate", () => {
    const m = cpuManager(policy, freshState(policy));
    expect([given(m, pod), admit(m, pod)]).toEqual([undefined, undefined]);
    expect(shown(m)).toEqual({ pool: "0-15" });
  });
});
