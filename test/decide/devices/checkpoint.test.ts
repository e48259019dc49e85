import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checksumOf, type DeviceCheckpoint, writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { checkCheckpoint, readCheckpoint } from "../../../api/decide/devices/checkpoint-read.ts";
import { sharedDevices } from "../../../api/decide/devices/inventory.ts";
import { fnv1a } from "../../../api/decide/go/fnv1a.ts";
import { hashedText } from "./hashed-text.ts";

const fileOf = (entries: string, registered: string, checksum: number | string): string =>
  `{"Data":{"PodDeviceEntries":${entries},"RegisteredDevices":${registered}},"Checksum":${checksum}}`;
function read(text: string): DeviceCheckpoint {
  const got = readCheckpoint(text);
  if (!got.ok) throw new Error(JSON.stringify(got.error));
  return got.value;
}
const faultOf = (text: string): unknown => {
  const got = readCheckpoint(text);
  return got.ok ? undefined : got.error;
};

describe("kubelet_internal_checkpoint", () => {
  // the checksums were computed by the kubelet's own code
  it.each([
    ["null for both parts", fileOf("null", "null", 1944006890)],
    ["nothing in either", fileOf("[]", "{}", 2932075448)],
    [
      "an entry of nothing but nils",
      fileOf(
        '[{"PodUID":"","ContainerName":"","ResourceName":"","DeviceIDs":null,"AllocResp":null}]',
        '{"a/b":null,"c/d":[]}',
        362506431,
      ),
    ],
    [
      "characters that Go escapes and NUMA nodes that it sorts as text",
      fileOf(
        '[{"PodUID":"u","ContainerName":"","ResourceName":"","DeviceIDs":{},"AllocResp":null},{"PodUID":"","ContainerName":"","ResourceName":"",' +
          '"DeviceIDs":{"1":null,"10":[],"2":["\\u003c\\u0026\\u003e\\u2028\\u0001\u007f\\"é\u{1f600}\ufffdx"]},"AllocResp":""}]',
        "{}",
        2407191425,
      ),
    ],
  ])("with %s is read and written byte for byte", (_, text) => {
    expect(writeCheckpoint(read(text))).toBe(text);
  });

  it("without one of its parts is read like that of a fresh kubelet", () => {
    expect(read('{"Checksum":2932075448}')).toEqual({ entries: [], registered: new Map() });
    expect(read('{"Data":{"Other":1},"Checksum":2932075448}').entries).toEqual([]);
  });
  it("is hashed over Go's spew output, NUMA nodes as numbers", () => {
    const entry = {
      podUid: "u",
      containerName: "c",
      resourceName: "a/b",
      deviceIds: new Map([
        [10, ["x", "y"]],
        [-1, null],
        [2, []],
      ]),
      allocResp: "AAH/",
    };
    expect(hashedText({ entries: [entry], registered: null })).toBe(
      "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[{PodUID:(string)u ContainerName:(string)c " +
        "ResourceName:(string)a/b DeviceIDs:(checkpoint.DevicesPerNUMA)map[-1:<nil> 2:[] 10:[x y]] AllocResp:([]uint8)[0 1 255]}] " +
        "RegisteredDevices:(map[string][]string)<nil>}",
    );
  });
  it("has the checksum of that output for any bytes that a plugin answered", () => {
    const allocResp = btoa(String.fromCharCode(...Array.from({ length: 256 }, (_, i) => i)));
    const entry = { podUid: "ü", containerName: "", resourceName: "a/b", deviceIds: null, allocResp };
    for (const entries of [null, [], [entry], [entry, { ...entry, allocResp: "" }, { ...entry, allocResp: null }]]) {
      const checkpoint = { entries, registered: new Map([["a/b", ["é", "x"]]]) };
      expect(checksumOf(checkpoint)).toBe(fnv1a(hashedText(checkpoint)));
    }
    expect(hashedText({ entries: [entry], registered: null })).toContain("[0 1 2 3 4 5 6 7 8 9 10 11 12");
    expect(hashedText({ entries: [entry], registered: null })).toContain(" 98 99 100 101 ");
    expect(hashedText({ entries: [entry], registered: null })).toContain(" 199 200 201 ");
  });
  it("has the same checksum whatever notation the JSON uses", () => {
    const one = fileOf('[{"PodUID":"u","DeviceIDs":{"01":["\\u0061"]},"AllocResp":"A\\r\\nA=="}]', "{}", 0);
    const fault = faultOf(one) as { actual: number };
    const other = fileOf('[{"AllocResp":"AA==","DeviceIDs":{"1":["a"]},"PodUID":"u"}]', "{}", fault.actual);
    expect(checksumOf(read(other))).toBe(fault.actual);
  });

  it.each([
    ["", { code: "empty", message: "unexpected end of JSON input" }],
    [" \n", { code: "empty", message: "unexpected end of JSON input" }],
    ['{"Data":{"PodDeviceEntries":[{"PodUID":', { code: "not_json", message: "unexpected end of JSON input" }],
    ['{"Checksum":1} x', { code: "not_json", message: "invalid character 'x' after top-level value" }],
    ["\u0001", { code: "not_json", message: "invalid character '\\x01' looking for beginning of value" }],
    ["[]", { code: "malformed", path: "", message: "expected an object" }],
    ['{"Data":[]}', { code: "malformed", path: "Data", message: "expected an object" }],
    [fileOf("{}", "{}", 1), { code: "malformed", path: "Data.PodDeviceEntries", message: "expected a list" }],
    [
      fileOf('[{"PodUID":1}]', "{}", 1),
      { code: "malformed", path: "Data.PodDeviceEntries[0].PodUID", message: "expected text" },
    ],
    [
      fileOf('[{"DeviceIDs":{"x":["a"]}}]', "{}", 1),
      {
        code: "malformed",
        path: "Data.PodDeviceEntries[0].DeviceIDs.x",
        message: "expected the number of a NUMA node",
      },
    ],
    [
      fileOf('[{"DeviceIDs":{"0":["a",2]}}]', "{}", 1),
      { code: "malformed", path: "Data.PodDeviceEntries[0].DeviceIDs.0[1]", message: "expected text" },
    ],
    [
      fileOf('[{"AllocResp":"a"}]', "{}", 1),
      { code: "malformed", path: "Data.PodDeviceEntries[0].AllocResp", message: "expected base64" },
    ],
    [
      fileOf("[]", '{"a/b":"c"}', 1),
      { code: "malformed", path: "Data.RegisteredDevices.a/b", message: "expected a list of device ids" },
    ],
    [fileOf("[]", "{}", -1), { code: "malformed", path: "Checksum", message: "expected a whole number" }],
    [fileOf("[]", "{}", '"1"'), { code: "malformed", path: "Checksum", message: "expected a whole number" }],
    [
      fileOf('[{"PodUID":"u","DeviceIDs":["x"]}]', "{}", 1),
      {
        code: "old_version",
        path: "Data.PodDeviceEntries[0].DeviceIDs",
        message:
          "json: cannot unmarshal array into Go struct field PodDevicesEntry.Data.PodDeviceEntries.DeviceIDs of type checkpoint.DevicesPerNUMA",
      },
    ],
    [fileOf("[]", "{}", 1), { code: "checksum", expected: 1, actual: 2932075448, message: "checkpoint is corrupted" }],
    ["null", { code: "checksum", expected: 0, actual: 2932075448, message: "checkpoint is corrupted" }],
  ])("is refused when it is malformed: %s", (text, fault) => {
    expect(faultOf(text)).toEqual(fault);
  });

  it("of a real node is refused when any byte of it changes", () => {
    const story = JSON.parse(
      readFileSync(join(import.meta.dirname, "../../data/real-devices/story.json"), "utf8"),
    ) as readonly { readonly name: string; readonly after: { readonly checkpoint: unknown } }[];
    const { checkpoint } = (story.find((s) => s.name.startsWith("11")) as (typeof story)[number]).after;
    const text = JSON.stringify(checkpoint);
    expect(readCheckpoint(text).ok).toBe(true);
    expect(checkCheckpoint(checkpoint).ok).toBe(true);
    const taken: string[] = [];
    for (let i = 0; i < text.length; i++) {
      const changed = readCheckpoint(`${text.slice(0, i)}${text[i] === "1" ? "2" : "1"}${text.slice(i + 1)}`);
      if (changed.ok) taken.push(writeCheckpoint(changed.value));
    }
    // in the last character of a base64 text some bits are unused
    expect(taken).toEqual([text]);
    for (let i = 0; i < text.length; i++) expect(readCheckpoint(text.slice(0, i)).ok).toBe(false);
  });
});

describe("a checkpoint that gives one device to several holders", () => {
  const entry = (podUid: string, containerName: string, ids: string[], resourceName = "a/b") => ({
    podUid,
    containerName,
    resourceName,
    deviceIds: new Map([
      [0, ids],
      [1, ids],
    ]),
    allocResp: "",
  });
  it("is accepted, and devices held by two pods are reported", () => {
    const entries = [
      entry("p", "c", ["x", "y"]),
      entry("q", "c", ["y", "z"]),
      entry("q", "c", ["x"], "c/d"),
      entry("r", "c", ["y"]),
    ];
    expect(sharedDevices(entries)).toEqual([{ resource: "a/b", id: "y", podUids: ["p", "q", "r"] }]);
  });
  it("is fine within a pod, where containers reuse the devices of init containers", () => {
    expect(sharedDevices([entry("p", "i", ["x"]), entry("p", "c", ["x"])])).toEqual([]);
    expect(sharedDevices(null)).toEqual([]);
  });
});
