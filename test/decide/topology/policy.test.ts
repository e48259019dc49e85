import { describe, expect, test } from "vitest";
import { MAX_ALIGNED_NODES, type PolicySetting, topologyPolicy } from "../../../api/decide/topology/policy.ts";
import { ALL_OPTIONS } from "../../kit/profiles.ts";

const numaNodes = (count: number): PolicySetting["nodes"] =>
  Array.from({ length: count }, (_, id) => ({ id, distances: Array(count).fill(10) }));
const bare = (count: number): PolicySetting["nodes"] => Array.from({ length: count }, (_, id) => ({ id }));
const setting = (change: Partial<PolicySetting>): PolicySetting => ({
  policy: "restricted",
  scope: "container",
  options: {},
  gates: ALL_OPTIONS,
  nodes: numaNodes(2),
  ...change,
});
const errorOf = (change: Partial<PolicySetting>) => {
  const made = topologyPolicy(setting(change));
  return made.ok ? undefined : made.error;
};
const CLOSEST = "prefer-closest-numa-nodes";
const MOST = "max-allowable-numa-nodes";

describe("a topology manager policy keeps the kubelet from starting, in its words", () => {
  const DISTANCES = "cannot discover NUMA topology: error getting NUMA distances from cadvisor";
  test.each<[Partial<PolicySetting>, string]>([
    [{ nodes: numaNodes(9) }, "unsupported on machines with more than 8 NUMA Nodes"],
    [{ nodes: numaNodes(9), policy: "nope", scope: "nope" }, "unsupported on machines with more than 8 NUMA Nodes"],
    [{ nodes: numaNodes(10), options: { [MOST]: "9" } }, "unsupported on machines with more than 9 NUMA Nodes"],
    [{ policy: 'nope"x' }, 'unknown policy: "nope"x"'],
    [{ scope: 'po"d' }, 'unknown scope: "po"d"'],
    [{ scope: "" }, 'unknown scope: ""'],
    [{ nodes: bare(2), options: { [CLOSEST]: "true" } }, DISTANCES],
    [{ nodes: bare(2), options: { [CLOSEST]: "1" }, policy: "single-numa-node" }, DISTANCES],
    [{ nodes: bare(9), options: { [CLOSEST]: "true" } }, DISTANCES],
  ])("%j", (change, message) => {
    expect(errorOf(change)).toEqual({ code: "start", message });
  });

  test.each<[string, string]>([
    ["", 'parsing "": invalid syntax'],
    ["yes", 'parsing "yes": invalid syntax'],
    ["tRue", 'parsing "tRue": invalid syntax'],
    ['a\tb"\\\x01é\u200b😀\u{e0001}', 'parsing "a\\tb\\"\\\\\\x01é\\u200b😀\\U000e0001": invalid syntax'],
  ])("prefer-closest-numa-nodes %j", (value, what) => {
    const message = `bad value for option "${CLOSEST}": strconv.ParseBool: ${what}`;
    expect(errorOf({ options: { [CLOSEST]: value } })).toEqual({ code: "start", message });
  });

  const range = (text: string) => `parsing "${text}": value out of range`;
  const syntax = (text: string) => `parsing "${text}": invalid syntax`;
  test.each<[string, string]>([
    ["", syntax("")],
    ["+", syntax("+")],
    ["0x10", syntax("0x10")],
    ["1_0", syntax("1_0")],
    ["8.0", syntax("8.0")],
    [" 8", syntax(" 8")],
    ["9223372036854775808", range("9223372036854775808")],
    ["-9223372036854775809", range("-9223372036854775809")],
    ["9999999999999999999x", syntax("9999999999999999999x")],
    ["18446744073709551615x", syntax("18446744073709551615x")],
    ["18446744073709551616x", range("18446744073709551616x")],
  ])("max-allowable-numa-nodes %j is no number", (value, what) => {
    const message = `unable to convert policy option to integer "${MOST}": strconv.Atoi: ${what}`;
    expect(errorOf({ options: { [MOST]: value } })).toEqual({ code: "start", message });
  });
  test.each(["7", "007", "-1", "-9223372036854775808"])(
    "with max-allowable-numa-nodes %s, which is too small",
    (value) => {
      const message = `the minimum value of "${MOST}" should not be less than 8`;
      expect(errorOf({ options: { [MOST]: value } })).toEqual({ code: "start", message });
    },
  );
  test("with an unknown option; of two faults the first by name is reported", () => {
    const unknown = { code: "start", message: 'unknown Topology Manager Policy option: "Bad\\n"' };
    expect(errorOf({ options: { "Bad\n": "1" } })).toEqual(unknown);
    expect(errorOf({ options: { [CLOSEST]: "x", [MOST]: "7", "Bad\n": "1" } })).toEqual(unknown);
    expect(errorOf({ options: { [CLOSEST]: "x", [MOST]: "7" } })?.message).toContain("minimum value");
  });
});

describe("a topology manager policy", () => {
  test("none ignores scope, options and NUMA nodes", () => {
    const made = topologyPolicy({
      ...setting({}),
      policy: "none",
      scope: "nope",
      options: { x: "y" },
      nodes: bare(40),
    });
    expect(made).toEqual({ ok: true, value: { name: "none" } });
  });
  test.each(["8", "+9", "0010", "9223372036854775807"])("accepts max-allowable-numa-nodes %s", (value) => {
    expect(errorOf({ options: { [MOST]: value } })).toBeUndefined();
  });
  test("has NUMA distances only with prefer-closest-numa-nodes", () => {
    const distances = (change: Partial<PolicySetting>) => {
      const made = topologyPolicy(setting(change));
      return made.ok && made.value.name !== "none" ? made.value.distances : undefined;
    };
    const square = [
      [10, 10],
      [10, 10],
    ];
    expect(distances({ options: { [CLOSEST]: "T" } })).toEqual(square);
    expect(distances({ options: { [CLOSEST]: "F" } })).toBeNull();
    expect(distances({ options: { [CLOSEST]: "true" }, policy: "single-numa-node" })).toBeNull();
  });
  test("sorts the rows of distances by NUMA node id", () => {
    const rows = [
      { id: 1, distances: [21, 10] },
      { id: 0, distances: [10, 12] },
    ];
    const made = topologyPolicy(setting({ options: { [CLOSEST]: "true" }, nodes: rows }));
    expect(made).toMatchObject({
      value: {
        distances: [
          [10, 12],
          [21, 10],
        ],
      },
    });
  });
});

describe("a topology policy is refused where the kubelet would panic or a decision would take too long", () => {
  test("for a gap in NUMA node ids with prefer-closest-numa-nodes", () => {
    const holed = [
      { id: 0, distances: [10, 20] },
      { id: 2, distances: [20, 10] },
    ];
    expect(errorOf({ nodes: holed })).toBeUndefined();
    expect(errorOf({ nodes: holed, options: { [CLOSEST]: "true" } })).toMatchObject({ code: "panic" });
  });
  test("for a NUMA node id above 63", () => {
    expect(errorOf({ nodes: [{ id: 0 }, { id: 64 }] })).toMatchObject({ code: "panic" });
    expect(errorOf({ nodes: [{ id: 0 }, { id: 63 }] })).toBeUndefined();
  });
  test("for more NUMA nodes than hints are computed for", () => {
    const options = { [MOST]: "64" };
    expect(errorOf({ nodes: numaNodes(MAX_ALIGNED_NODES), options })).toBeUndefined();
    expect(errorOf({ nodes: numaNodes(MAX_ALIGNED_NODES + 1), options })).toMatchObject({ code: "bound" });
  });
});
