import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { DeviceHistoryEntry } from "../../../actuator/pods/devices/history.ts";
import { historyTable } from "../../../api/cli/devices/history.ts";
import { plainPaint } from "../../../api/text/style.ts";
import { expectPublished } from "../published.ts";
import { deviceNode } from "./device-node.ts";

const BAD = "\u001b[2J";
const at = (second: number): string => `2026-11-22T12:00:0${second}.000Z`;
const ENTRIES: readonly DeviceHistoryEntry[] = [
  { at: at(0), kind: "registered", resource: "vendor.com/gpu", endpoint: "/p/gpu.sock", count: 2 },
  { at: at(1), kind: "allocated", resource: "vendor.com/gpu", count: 1, devices: ["g0"], pod: "ml/a", container: "c" },
  { at: at(2), kind: "registered", resource: "vendor.com/nic", endpoint: "/p/nic.sock" },
  {
    at: at(3),
    kind: "flips",
    resource: "vendor.com/gpu",
    count: 9,
    flips: [
      { id: "g0", from: "Healthy", to: "Unhealthy" },
      { id: "g1", from: null, to: "Healthy" },
      { id: "g2", from: "Healthy", to: null },
    ],
  },
  {
    at: at(4),
    kind: "refused",
    resource: "vendor.com/gpu",
    podUid: "uid-b",
    reason: "UnexpectedAdmissionError",
    message: `Allocate failed ${BAD}`,
  },
];
const NEWEST_FIRST = ENTRIES.toReversed();
const recorded = () => {
  const node = deviceNode();
  writeFileSync(node.at("state/device-history.jsonl"), ENTRIES.map((one) => `${JSON.stringify(one)}\n`).join(""));
  return node;
};

test("devices history prints the events newest first", async () => {
  const ran = await recorded().history();
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  expect(ran.stdout.split("\n")).toEqual([
    "AT                        WHAT        RESOURCE        COUNT  DEVICES                                                         POD    CONTAINER",
    "2026-11-22T12:00:04.000Z  refused     vendor.com/gpu                                                                         uid-b",
    "  UnexpectedAdmissionError: Allocate failed ␛[2J",
    "2026-11-22T12:00:03.000Z  flips       vendor.com/gpu      9  g0 Healthy -> Unhealthy, g1 new -> Healthy, g2 Healthy -> gone",
    "2026-11-22T12:00:02.000Z  registered  vendor.com/nic",
    "  at /p/nic.sock",
    "2026-11-22T12:00:01.000Z  allocated   vendor.com/gpu      1  g0                                                              ml/a   c",
    "2026-11-22T12:00:00.000Z  registered  vendor.com/gpu      2",
    "  at /p/gpu.sock",
    "",
  ]);
});

test("devices history filters by resource and limit, and prints data", async () => {
  const node = recorded();
  const { stdout } = await node.history("--resource", "vendor.com/gpu", "--limit", "2", "-o", "json");
  await expectPublished("devices-history", stdout);
  expect(JSON.parse(stdout)).toEqual({
    stateDir: node.at("state"),
    entries: NEWEST_FIRST.filter(({ resource }) => resource === "vendor.com/gpu").slice(0, 2),
  });
  const older = JSON.parse((await node.history("--limit", "9", "-o", "json")).stdout);
  expect(older.entries).toEqual(NEWEST_FIRST);
});

test("devices history says when nothing is recorded, when it cannot be read, and for a wrong limit", async () => {
  const node = deviceNode();
  expect(await node.history()).toMatchObject({
    code: 0,
    stdout: `nothing of devices is recorded in ${node.at("state")}\n`,
  });
  const wrong = await node.history("--limit", "0");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/whole number from 1 to 100000/)]);
  writeFileSync(node.at("state/file"), "");
  const broken = await node.history("--state-dir", node.at("state/file"));
  expect([broken.code, broken.stderr]).toEqual([4, expect.stringMatching(/device history .*: ENOTDIR/)]);
});

test.each([200, 110, 80])("devices history keeps within %d columns", (columns) => {
  const terminal = { columns, paint: plainPaint, write: () => {}, warn: () => {} };
  const lines = historyTable(NEWEST_FIRST, terminal).split("\n");
  const rows = lines.filter((line) => !line.startsWith(" "));
  expect(Math.max(...rows.map((line) => line.length))).toBeLessThanOrEqual(columns);
});
