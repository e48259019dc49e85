import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import { decodeStatus } from "../../../actuator/status/node-status.ts";
import { StatusFile, statusFile } from "../../../actuator/status/status-file.ts";
import { deviceRow, nodeStatus } from "../../kit/node-status.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { PATIENT } from "../../patient.ts";

let dir: string;
beforeEach(() => {
  dir = scratchFolder();
});

const named = (nodeName: string) => () => nodeStatus({ nodeName });
const written = (): string => JSON.parse(readFileSync(statusFile(dir), "utf8")).nodeName;

test("the status file is written at most every 5 s and at the end, readable by its owner only", async () => {
  let now = 0;
  const problems: string[] = [];
  const file = new StatusFile({ stateDir: dir, onProblem: (message) => problems.push(message), now: () => now });
  file.offer(named("first"));
  await vi.waitUntil(() => readdirSync(dir).join() === "status.json", PATIENT);
  expect(written()).toBe("first");
  expect(statSync(statusFile(dir)).mode & 0o777).toBe(0o600);
  now = 5000;
  let isLookedAt = false;
  const second = () => {
    isLookedAt = true;
    return named("second")();
  };
  // no status is read while a write is in progress
  const lookedAt = () => {
    file.offer(second);
    return isLookedAt;
  };
  await vi.waitUntil(lookedAt, PATIENT);
  await vi.waitUntil(() => written() === "second", PATIENT);
  now = 10_000;
  isLookedAt = false;
  await vi.waitUntil(lookedAt, PATIENT);
  // the status was unchanged, so no write is in progress
  now = 14_999;
  file.offer(() => {
    throw new Error("asked too early");
  });
  await file.close(nodeStatus({ nodeName: "last" }));
  expect(written()).toBe("last");
  expect(readdirSync(dir)).toEqual(["status.json"]);
  expect(problems).toEqual([]);
  const read = decodeStatus(readFileSync(statusFile(dir), "utf8"));
  expect(read).toEqual({ ok: true, value: nodeStatus({ nodeName: "last" }) });
});

test("the status file is written once a minute while only times and measurements change", async () => {
  let [now, looks, writes] = [0, 0, 0];
  const file = new StatusFile({ stateDir: dir, onProblem: () => {}, now: () => now });
  /** Offers a status at this second, and returns how often the file has been written in total. */
  const writesAt = async (second: number, more: object = {}): Promise<number> => {
    now = second * 1000;
    const at = { toJSON: () => `write ${++writes}` };
    const { pass, pods, ...made } = nodeStatus();
    const usage = { ...NO_USAGE, cpuMilli: second };
    const status = {
      ...made,
      at,
      pass: pass && { ...pass, sequence: second, cpuMs: second, tookMs: second },
      pods: pods.map((pod) => ({ ...pod, usage })),
      devices: [deviceRow("vendor.com/gpu", { flips: second })],
      ...more,
    };
    const wanted = looks + 1;
    // no status is computed while a write is in progress
    await vi.waitUntil(() => {
      file.offer(() => {
        looks++;
        return status as unknown as NodeStatus;
      });
      return looks === wanted;
    }, PATIENT);
    return writes;
  };
  expect([await writesAt(1), await writesAt(10), await writesAt(60)]).toEqual([1, 1, 1]);
  expect([await writesAt(65), await writesAt(70)]).toEqual([2, 2]);
  const problems = ["runtime: away"];
  expect([await writesAt(76, { problems }), await writesAt(84, { problems }), await writesAt(90)]).toEqual([3, 3, 4]);
  await vi.waitUntil(() => readFileSync(statusFile(dir), "utf8").includes("write 4"), PATIENT);
});
const NO_USAGE = { cpuMilli: null, memoryWorkingSetBytes: null, pids: null, throttledPermille: null, pressure: null };

test("a failed write is reported once until it works again, and no link is followed", async () => {
  const problems: string[] = [];
  let now = 0;
  const file = new StatusFile({ stateDir: dir, onProblem: (message) => problems.push(message), now: () => now });
  const victim = join(dir, "victim");
  writeFileSync(victim, "mine");
  symlinkSync(victim, `${statusFile(dir)}.new`);
  for (; now < 30_000; now += 5000) {
    file.offer(named("n"));
    await vi.waitUntil(() => problems.length > 0, PATIENT);
  }
  await file.close(nodeStatus());
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(/status\.json: ELOOP/);
  expect(readFileSync(victim, "utf8")).toBe("mine");
});

test("the status file has its own mode even if an unfinished file had another", async () => {
  writeFileSync(`${statusFile(dir)}.new`, "old");
  chmodSync(`${statusFile(dir)}.new`, 0o666);
  const file = new StatusFile({ stateDir: dir, onProblem: () => {} });
  await file.close(nodeStatus());
  expect(statSync(statusFile(dir)).mode & 0o777).toBe(0o600);
});

test.each([
  ["", /^not JSON$/],
  ["[]", /^no node status: the whole: /],
  [JSON.stringify({ ...nodeStatus(), pods: [{ name: "x" }] }), /^no node status: pods\.0\./],
  [JSON.stringify({ ...nodeStatus(), at: "soon" }), /^no node status: at: must be a time$/],
])("an invalid status is refused with the reason: %.40s", (text, message) => {
  const read = decodeStatus(text);
  expect(!read.ok && read.error).toMatch(message);
});

test("unknown fields of a newer daemon are kept", () => {
  const newer = { ...nodeStatus(), uptime: 5 };
  expect(decodeStatus(JSON.stringify(newer))).toEqual({ ok: true, value: newer });
});

test("a status without devices is accepted, and given devices are validated", () => {
  const { devices: _none, ...old } = nodeStatus();
  expect(decodeStatus(JSON.stringify(old))).toEqual({ ok: true, value: old });
  const status = nodeStatus({ devices: [deviceRow("vendor.com/gpu"), deviceRow("a.com/b", { endpoint: null })] });
  expect(decodeStatus(JSON.stringify(status))).toEqual({ ok: true, value: status });
  const wrong = (changes: object): string => {
    const read = decodeStatus(JSON.stringify({ ...old, devices: [{ ...deviceRow("a.com/b"), ...changes }] }));
    return read.ok ? "" : read.error;
  };
  expect(wrong({ plugin: "asleep" })).toMatch(/devices\.0\.plugin/);
  expect(wrong({ capacity: -1 })).toMatch(/devices\.0\.capacity/);
  expect(wrong({ holders: [{ pod: "a/b" }] })).toMatch(/devices\.0\.holders\.0\.uid/);
});
