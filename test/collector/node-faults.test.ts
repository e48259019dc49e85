import { expect, test } from "vitest";
import { type NodeFault, NodeFaults } from "../../api/collector/node-faults.ts";

const PARTS = ["pods", "configz", "stats", "snapshot"] as const;
const fault = (part: NodeFault["part"], code = "timed-out"): NodeFault => ({ part, code, text: `${part} ${code}` });
const [configz, stats] = [fault("configz"), fault("stats")];
/** The faults that are reported for each read of a node. */
const reportOf = (faults: NodeFaults, ...looks: readonly (readonly NodeFault[])[]) =>
  looks.map((look) => faults.looked("n1", PARTS, look));

test("a fault is reported when it begins and when it ends, whatever its text", () => {
  const other = { ...configz, text: "the same, of another address" };
  expect(reportOf(new NodeFaults(), [configz], [other], [configz], [], [], [configz])).toEqual([
    ...["configz: configz timed-out", undefined, undefined, null, undefined],
    "configz: configz timed-out",
  ]);
});

test("alternating faults are reported once each", () => {
  const faults = new NodeFaults();
  expect(reportOf(faults, [configz], [stats], [configz], [stats], [configz], [stats], [])).toEqual([
    ...["configz: configz timed-out", "stats: stats timed-out", undefined, undefined, undefined, undefined, null],
  ]);
});

test("an additional fault, another reason, and an end are reported", () => {
  const faults = new NodeFaults();
  expect(reportOf(faults, [configz], [configz, stats], [configz, fault("stats", "forbidden")])).toEqual([
    "configz: configz timed-out",
    "configz: configz timed-out; stats: stats timed-out",
    "configz: configz timed-out; stats: stats forbidden",
  ]);
  const alone = reportOf(faults, ...Array.from({ length: 8 }, () => [configz]));
  expect(alone.filter((line) => line !== undefined)).toEqual(["configz: configz timed-out"]);
  expect(reportOf(faults, [stats])).toEqual(["stats: stats timed-out"]);
});

test("a fault of a part not looked at stays, and the end is reported when all faults are gone", () => {
  const faults = new NodeFaults();
  const refused = fault("outcomes", "refused");
  expect(faults.looked("n1", ["outcomes"], [refused])).toBe("outcomes: outcomes refused");
  expect(reportOf(faults, [], [configz], [])).toEqual([undefined, "configz: configz timed-out", undefined]);
  expect(faults.looked("n1", ["outcomes"], [])).toBe(null);
  expect(faults.looked("n1", ["outcomes"], [])).toBe(undefined);
});

test("faults are kept per node, and those of a removed node are forgotten", () => {
  const faults = new NodeFaults();
  expect(faults.looked("n1", PARTS, [configz])).toBeDefined();
  expect(faults.looked("n2", PARTS, [configz])).toBeDefined();
  faults.forget("n1");
  expect(faults.looked("n1", PARTS, [])).toBe(undefined);
  expect(faults.looked("n2", PARTS, [])).toBe(null);
});
