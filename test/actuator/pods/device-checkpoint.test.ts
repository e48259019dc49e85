import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  ManagerFiles,
  persistDeviceCheckpoint,
  readDeviceCheckpoint,
} from "../../../actuator/pods/devices/manager-files.ts";
import { LIMITS } from "../../../api/base/limits.ts";
import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { scratch } from "./scratch.ts";

interface Step {
  readonly name: string;
  readonly after: { readonly checkpoint: unknown };
}
const STEPS = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../data/real-devices/story.json"), "utf8"),
) as readonly Step[];
const real = (number: string): string =>
  JSON.stringify(STEPS.find(({ name }) => name.startsWith(number))?.after.checkpoint);

/** A kubelet's directory that contains this checkpoint. */
function directoryWith(text: string): string {
  const directory = scratch();
  mkdirSync(join(directory, "device-plugins"));
  writeFileSync(fileIn(directory), text);
  return directory;
}
const fileIn = (directory: string): string => join(directory, "device-plugins/kubelet_internal_checkpoint");
const readAgain = (directory: string) => readDeviceCheckpoint(new ManagerFiles(directory));
function valueIn(directory: string): DeviceCheckpoint {
  const read = readAgain(directory);
  if (!read.ok || read.value === undefined) throw new Error(JSON.stringify(read));
  return read.value;
}

test("without a checkpoint file no device is held, and no fault is reported", () => {
  expect(readAgain(scratch())).toEqual({ ok: true, value: undefined });
});

test("a real kubelet's checkpoint is read and written back byte by byte", () => {
  for (const number of ["02", "11", "15"]) {
    const directory = directoryWith(real(number));
    const checkpoint = valueIn(directory);
    expect(checkpoint.entries?.length).toBeGreaterThan(0);
    const fresh = join(scratch(), "managers");
    const files = new ManagerFiles(fresh);
    expect(persistDeviceCheckpoint(files, checkpoint)).toEqual({ ok: true, value: true });
    expect(persistDeviceCheckpoint(files, checkpoint)).toEqual({ ok: true, value: false });
    expect(readFileSync(fileIn(fresh), "utf8")).toBe(real(number));
    expect(statSync(fileIn(fresh)).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(fresh, "device-plugins"))).toEqual(["kubelet_internal_checkpoint"]);
    expect(valueIn(fresh)).toEqual(checkpoint);
    expect(readDeviceCheckpoint(files)).toEqual({ ok: true, value: checkpoint });
  }
});

test.each([
  ["a wrong checksum", real("11").replace(/"Checksum":\d+/, '"Checksum":7'), "checksum", "checkpoint is corrupted"],
  ["another device in an entry", real("11").replace('["Dev-1"]}', '["Dev-9"]}'), "checksum", "checkpoint is corrupted"],
  [
    "the form of older kubelets",
    real("11").replaceAll(/\{"-1":(\[[^\]]*\])\}/g, "$1"),
    "old_version",
    "json: cannot unmarshal array into Go struct field PodDevicesEntry.Data.PodDeviceEntries.DeviceIDs of type checkpoint.DevicesPerNUMA",
  ],
  ["half of it", real("11").slice(0, 200), "not_json", "unexpected end of JSON input"],
  ["nothing in it", "", "empty", "unexpected end of JSON input"],
])(
  "a checkpoint with %s is rejected with the kubelet's reason, and stays on disk until the next write",
  (_, text, code, message) => {
    const directory = directoryWith(text);
    expect(readAgain(directory)).toMatchObject({ ok: false, error: { code, message } });
    // the file stays for inspection, until a device is allocated again
    expect(readFileSync(fileIn(directory), "utf8")).toBe(text);
    const files = new ManagerFiles(directory);
    expect(persistDeviceCheckpoint(files, { entries: null, registered: new Map() })).toEqual({ ok: true, value: true });
    expect(valueIn(directory)).toEqual({ entries: null, registered: new Map() });
  },
);

test("an unreadable checkpoint is reported as unreadable, not as missing", () => {
  const directory = directoryWith("{}");
  rmSync(fileIn(directory));
  mkdirSync(fileIn(directory));
  const read = readAgain(directory);
  expect(read).toMatchObject({ ok: false, error: { code: "unreadable" } });
  expect(!read.ok && read.error.message).toContain("kubelet_internal_checkpoint: ");
});

test("a failed write is reported and leaves the checkpoint as it was", () => {
  const directory = directoryWith(real("02"));
  const files = new ManagerFiles(directory);
  mkdirSync(`${fileIn(directory)}.new`);
  const kept = persistDeviceCheckpoint(files, { entries: null, registered: null });
  expect(!kept.ok && kept.error).toMatch(/EISDIR/);
  expect(readFileSync(fileIn(directory), "utf8")).toBe(real("02"));
  const before = valueIn(directory);
  expect(readDeviceCheckpoint(files)).toEqual({ ok: true, value: before });
});

test("a checkpoint too large to be read back is not written, and the former one stays in force", () => {
  const directory = directoryWith(real("11"));
  const files = new ManagerFiles(directory);
  const before = valueIn(directory);
  // the maximum number of devices of a node, with ids of 250 characters
  const ids = Array.from({ length: LIMITS.devices }, (_, i) => `${i}`.padStart(250, "x"));
  const large = { ...before, registered: new Map([["example.com/gpu", ids]]) };
  const kept = persistDeviceCheckpoint(files, large);
  expect(!kept.ok && kept.error).toMatch(/kubelet_internal_checkpoint would have \d{7} bytes, .*the limit `stateText`/);
  expect(readFileSync(fileIn(directory), "utf8")).toBe(real("11"));
  expect(readDeviceCheckpoint(files)).toEqual({ ok: true, value: before });
});

test("a file left half written by a crash is ignored, and removed by the next write", () => {
  const directory = directoryWith(real("02"));
  writeFileSync(`${fileIn(directory)}.new`, real("11").slice(0, 80));
  const before = valueIn(directory);
  expect(before.entries).toHaveLength(1);
  expect(persistDeviceCheckpoint(new ManagerFiles(directory), { ...before, registered: new Map() }).ok).toBe(true);
  expect(readdirSync(join(directory, "device-plugins"))).toEqual(["kubelet_internal_checkpoint"]);
});
