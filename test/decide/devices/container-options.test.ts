import protobuf from "protobufjs";
import { describe, expect, it } from "vitest";
import {
  type AllocateResponse,
  containerOptions,
  readAllocateResponse,
} from "../../../api/decide/devices/allocate-response.ts";

const PROTO = `syntax = "proto3";
message ContainerAllocateResponse {
  map<string, string> envs = 1;
  repeated Mount mounts = 2;
  repeated DeviceSpec devices = 3;
  map<string, string> annotations = 4;
  repeated CDIDevice cdi_devices = 5;
}
message Mount { string container_path = 1; string host_path = 2; bool read_only = 3; }
message DeviceSpec { string container_path = 1; string host_path = 2; string permissions = 3; }
message CDIDevice { string name = 1; }`;
const Message = protobuf.parse(PROTO).root.lookupType("ContainerAllocateResponse");
const encode = (message: object): string =>
  Buffer.from(Message.encode(Message.fromObject(message)).finish()).toString("base64");
const base64 = (...bytes: number[]): string => Buffer.from(bytes).toString("base64");
const read = (text: string): AllocateResponse => {
  const got = readAllocateResponse(text);
  if (!got.ok) throw new Error(JSON.stringify(got.error));
  return got.value;
};

const FULL = {
  envs: { B: "2", A: "1", EMPTY: "" },
  mounts: [
    { containerPath: "/data", hostPath: "/srv/data", readOnly: true },
    { containerPath: "/rw", hostPath: "/srv/rw", readOnly: false },
  ],
  devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/nvidia0", permissions: "mrw" }],
  annotations: { "example.com/größe": "x".repeat(300) },
  cdiDevices: [{ name: "vendor.com/gpu=0" }, { name: "vendor.com/gpu=1" }],
};

describe("a plugin's AllocateResponse in protobuf", () => {
  it("is decoded from the output of another protobuf library", () => {
    expect(read(encode(FULL))).toEqual({
      envs: new Map(Object.entries(FULL.envs)),
      mounts: FULL.mounts,
      devices: FULL.devices,
      annotations: new Map(Object.entries(FULL.annotations)),
      cdiDevices: ["vendor.com/gpu=0", "vendor.com/gpu=1"],
    });
    expect(read("")).toEqual(read(encode({})));
  });
  it("is decoded from the bytes of real plugins", () => {
    expect(read("EhgKCi90bXAvRGV2LTESCi90bXAvRGV2LTE=").mounts).toEqual([
      { containerPath: "/tmp/Dev-1", hostPath: "/tmp/Dev-1", readOnly: false },
    ]);
    expect(read("GhsKCS9kZXYvZnVzZRIJL2Rldi9mdXNlGgNtcnc=").devices).toEqual([
      { containerPath: "/dev/fuse", hostPath: "/dev/fuse", permissions: "mrw" },
    ]);
  });
  it("may contain unknown fields, and known ones with another wire type", () => {
    const cdi = [0x2a, 3, 0x0a, 1, 0x67];
    const unknown = [
      [0x30, 0x96, 0x01],
      [0x39, 1, 2, 3, 4, 5, 6, 7, 8],
      [0x45, 1, 2, 3, 4],
      [0x4a, 2, 0xff, 0xff],
      [0x3b, 0x08, 1, 0x43, 0x44, 0x3c],
      [0x08, 1],
    ];
    for (const bytes of unknown) expect(read(base64(...bytes, ...cdi)).cdiDevices).toEqual(["g"]);
  });
  it("keeps the last of repeated values, and reads missing ones as empty", () => {
    expect(read(base64(0x2a, 6, 0x0a, 1, 0x61, 0x0a, 1, 0x62)).cdiDevices).toEqual(["b"]);
    expect(read(base64(0x0a, 3, 0x0a, 1, 0x61, 0x0a, 6, 0x0a, 1, 0x61, 0x12, 1, 0x7a)).envs).toEqual(
      new Map([["a", "z"]]),
    );
    expect(read(base64(0x0a, 0, 0x12, 2, 0x18, 2))).toMatchObject({
      envs: new Map([["", ""]]),
      mounts: [{ containerPath: "", hostPath: "", readOnly: true }],
    });
  });
  it.each([
    ["cut in a field's length", [0x0a], { code: "truncated", at: 1 }],
    ["cut in a text", [0x2a, 3, 0x0a, 4, 0x61], { code: "truncated", at: 5 }],
    ["cut in a fixed number", [0x45, 1, 2], { code: "truncated", at: 3 }],
    ["cut in a group", [0x3b, 8, 1], { code: "truncated", at: 3 }],
    ["with a length beyond its part", [0x2a, 2, 0x0a, 9, 0x30, 0], { code: "truncated", at: 4 }],
    ["with a varint that never ends", Array.from({ length: 11 }, () => 0xff), { code: "bad_varint", at: 0 }],
    [
      "with a varint above 64 bits",
      [0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
      { code: "bad_varint", at: 1 },
    ],
    ["with field number 0", [0x02, 0], { code: "bad_field", at: 0 }],
    ["with an unknown wire type", [0x2a, 0, 0x2e], { code: "bad_field", at: 2 }],
    ["with a group that ends unopened", [0x3c], { code: "bad_group", at: 0 }],
    ["with a group that another closes", [0x3b, 0x44], { code: "bad_group", at: 1 }],
    ["with text that is not UTF-8", [0x2a, 3, 0x0a, 1, 0xff], { code: "bad_utf8", at: 4 }],
  ])("is refused when malformed: %s", (_, bytes, error) => {
    expect(readAllocateResponse(base64(...bytes))).toEqual({ ok: false, error });
  });
  it("is refused or read as a shorter message when cut at any byte, and never throws", () => {
    const bytes = Buffer.from(encode(FULL), "base64");
    const whole = Array.from(
      { length: bytes.length },
      (_, i) => readAllocateResponse(bytes.subarray(0, i).toString("base64")).ok,
    );
    // the message is valid at the ends of its 9 fields: the empty message counts, and the whole message is not in the
    // loop
    expect(whole.filter(Boolean)).toHaveLength(9);
  });
});

const response = (over: Partial<AllocateResponse>): AllocateResponse => ({
  envs: new Map(),
  mounts: [],
  devices: [],
  annotations: new Map(),
  cdiDevices: [],
  ...over,
});
const spec = (hostPath: string, permissions = "r") => ({ containerPath: "/dev/x", hostPath, permissions });
const mount = (hostPath: string, readOnly = false) => ({ containerPath: "/mnt", hostPath, readOnly });

describe("the options of a container with several device plugins", () => {
  it("are ordered by resource, name and list, whatever order the answers come in", () => {
    const gpu = { resource: "a/gpu", response: read(encode(FULL)) };
    const nic = { resource: "b/nic", response: response({ envs: new Map([["AA", "0"]]), cdiDevices: ["v/nic=0"] }) };
    const options = containerOptions([nic, gpu]);
    expect(options.envs.map((e) => e.name)).toEqual(["A", "B", "EMPTY", "AA"]);
    expect(options.devices).toEqual([{ pathOnHost: "/dev/nvidia0", pathInContainer: "/dev/gpu0", permissions: "mrw" }]);
    expect(options.mounts).toEqual(FULL.mounts);
    expect(options.cdiDevices).toEqual(["vendor.com/gpu=0", "vendor.com/gpu=1", "v/nic=0"]);
    expect(options.conflicts).toEqual([]);
    expect(containerOptions([gpu, nic])).toEqual(options);
  });
  it("take the first of two values for one name, and report a conflict when they differ", () => {
    const first = response({
      envs: new Map([["E", "1"]]),
      annotations: new Map([["n", "1"]]),
      devices: [spec("/dev/a")],
      mounts: [mount("/a")],
      cdiDevices: ["v/c=0"],
    });
    const second = response({
      envs: new Map([["E", "2"]]),
      annotations: new Map([["n", "2"]]),
      devices: [spec("/dev/b")],
      mounts: [mount("/b")],
      cdiDevices: ["v/c=0"],
    });
    const options = containerOptions([
      { resource: "b", response: second },
      { resource: "a", response: first },
    ]);
    const between = (kept: string, dropped: string) => ({
      kept: { resource: "a", value: kept },
      dropped: { resource: "b", value: dropped },
    });
    expect(options.conflicts).toEqual([
      { kind: "env", name: "E", ...between("1", "2") },
      { kind: "device", name: "/dev/x", ...between("/dev/a", "/dev/b") },
      { kind: "mount", name: "/mnt", ...between("/a", "/b") },
      { kind: "annotation", name: "n", ...between("1", "2") },
    ]);
    expect(options.envs).toEqual([{ name: "E", value: "1" }]);
    expect(options.mounts).toEqual([mount("/a")]);
    expect(options.cdiDevices).toEqual(["v/c=0"]);
  });
  it("do not conflict when only permissions or readOnly differ, as the kubelet compares host paths", () => {
    const one = { resource: "a", response: response({ devices: [spec("/d", "r")], mounts: [mount("/m", true)] }) };
    const two = { resource: "b", response: response({ devices: [spec("/d", "rw")], mounts: [mount("/m")] }) };
    const options = containerOptions([one, two]);
    expect(options.conflicts).toEqual([]);
    expect(options.devices[0]?.permissions).toBe("r");
    expect(options.mounts[0]?.readOnly).toBe(true);
  });
});
