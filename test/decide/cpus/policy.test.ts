import { describe, expect, test } from "vitest";
import { type CpuPolicySetting, cpuPolicy } from "../../../api/decide/cpus/policy.ts";
import { cpuText } from "../../../api/decide/cpus/sets.ts";
import { fromNanos, fromUnits } from "../../../api/model/amount.ts";
import { ALL_OPTIONS } from "../../kit/profiles.ts";
import { evenMachine, policyOn, topologyOf } from "./kit.ts";

const SETTING: CpuPolicySetting = {
  policy: "static",
  topology: evenMachine({ cores: 4 }),
  options: {},
  gates: ALL_OPTIONS,
  topologyPolicy: "none",
  reservedCpu: fromUnits(1),
  reservedSystemCpus: "",
};
function errorOf(setting: Partial<CpuPolicySetting>): string | undefined {
  const policy = cpuPolicy({ ...SETTING, ...setting });
  return policy.ok ? undefined : policy.error;
}
function reservedOf(setting: Partial<CpuPolicySetting>): string {
  const policy = cpuPolicy({ ...SETTING, ...setting });
  if (!policy.ok || policy.value.name === "none") throw new Error(`no static policy: ${JSON.stringify(policy)}`);
  return cpuText(policy.value.reserved);
}
const on = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, "true"]));

describe("the CPUs reserved for the system", () => {
  test("are rounded up to whole CPUs and taken whole cores first", () => {
    expect(reservedOf({ reservedCpu: fromNanos(1_500_000_000n) })).toBe("0,4");
    expect(reservedOf({ reservedCpu: fromNanos(1_000_001n) })).toBe("0");
    expect(reservedOf({ reservedCpu: fromUnits(3) })).toBe("0-1,4");
    expect(reservedOf({ reservedCpu: fromUnits(2), options: on("distribute-cpus-across-cores") })).toBe("0-1");
  });
  test("are those of reservedSystemCPUs, whatever the other reserves add up to", () => {
    expect(reservedOf({ reservedSystemCpus: "1,6", reservedCpu: fromUnits(0) })).toBe("1,6");
    const { reservedCores } = policyOn(SETTING.topology, [], { numReserved: 2, reserved: new Set([1, 6]) });
    expect(cpuText(reservedCores)).toBe("1-2,5-6");
  });
  test("must not be zero", () => {
    expect(errorOf({ reservedCpu: fromUnits(0) })).toBe(
      "[cpumanager] unable to determine reserved CPU resources for static policy",
    );
  });
  test("must fit the machine", () => {
    expect(errorOf({ reservedCpu: fromUnits(9) })).toBe(
      "new static policy error: [cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 9)",
    );
    expect(errorOf({ reservedSystemCpus: "7-8" })).toBe("reserved-cpus: 7-8 is not a subset of online-cpus: 0-7");
    expect(errorOf({ policy: "none", reservedSystemCpus: "0-x" })).toBe(
      'unable to parse reserved-cpus list: strconv.Atoi: parsing "x": invalid syntax',
    );
  });
  test("may be listed with gaps between CPU ids", () => {
    const rows = [0, 1, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 }));
    expect(reservedOf({ topology: topologyOf(rows), reservedSystemCpus: "1,3" })).toBe("1,3");
  });
});

describe("CPU manager policies and their options", () => {
  const wrapped = (message: string): string => `new static policy error: ${message}`;
  test("an unknown policy is refused by name", () => {
    expect(errorOf({ policy: "Static" })).toBe('unknown policy: "Static"');
  });
  test("policy none refuses options", () => {
    expect(errorOf({ policy: "none" })).toBeUndefined();
    expect(errorOf({ policy: "none", options: { b: "2", a: "1" } })).toBe(
      "new none policy error: None policy: received unsupported options=map[a:1 b:2]",
    );
  });
  test("an unknown option is refused by name", () => {
    expect(errorOf({ options: { 'full"cpus': "true" } })).toBe(
      wrapped('unknown CPU Manager Policy option: "full\\"cpus"'),
    );
  });
  test("alpha and beta options need their feature gates, stable ones do not", () => {
    const gates = { ...ALL_OPTIONS, alpha: false, beta: false };
    const need = (level: string, option: string) =>
      wrapped(`CPU Manager Policy ${level}-level Options not enabled, but option "${option}" provided`);
    for (const option of ["align-by-socket", "distribute-cpus-across-cores"]) {
      expect(errorOf({ gates, options: { [option]: "false" } })).toBe(need("Alpha", option));
      expect(errorOf({ gates: { ...gates, alpha: true }, options: on(option) })).toBeUndefined();
    }
    const beta = "distribute-cpus-across-numa";
    expect(errorOf({ gates, options: on(beta) })).toBe(need("Beta", beta));
    expect(errorOf({ gates: { ...gates, beta: true }, options: on(beta) })).toBeUndefined();
    for (const option of ["full-pcpus-only", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"]) {
      expect(errorOf({ gates, options: on(option) })).toBeUndefined();
    }
  });
  test("a non-boolean option value is refused; of several faults the first by name is reported", () => {
    const options = { zz: "1", "full-pcpus-only": "yes" };
    expect(errorOf({ options })).toBe(
      wrapped('bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": invalid syntax'),
    );
  });
  test.each([
    ["full-pcpus-only", "distribute-cpus-across-cores"],
    ["distribute-cpus-across-numa", "distribute-cpus-across-cores"],
    ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"],
    ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"],
  ])("options %s and %s cannot be combined", (a, b) => {
    expect(errorOf({ options: on(a, b) })).toBe(
      wrapped(`static policy options ${a} and ${b} can not be used at the same time`),
    );
    expect(errorOf({ options: { [a]: "true", [b]: "false" } })).toBeUndefined();
  });
  test("align-by-socket needs at least as many NUMA nodes as sockets, and not single-numa-node", () => {
    const options = on("align-by-socket");
    expect(errorOf({ options, topologyPolicy: "single-numa-node" })).toBe(
      wrapped("Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"),
    );
    expect(errorOf({ options, topologyPolicy: "restricted" })).toBeUndefined();
    expect(errorOf({ options, topology: evenMachine({ cores: 4, sockets: 2, nodes: 1 }) })).toBe(
      wrapped("Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"),
    );
  });
});
