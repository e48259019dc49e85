import { describe, expect, test } from "vitest";
import { readAllocations } from "../../../actuator/deviceplugin/endpoint.ts";
import { serviceOf } from "../../../actuator/deviceplugin/plugin-client.ts";

const bytesOf = (containerResponses: readonly object[]): Buffer =>
  serviceOf("v1beta1.DevicePlugin")["Allocate"]?.responseSerialize({ containerResponses }) ?? Buffer.alloc(0);

describe("an answer to Allocate", () => {
  test("is decoded completely, and kept as received", () => {
    const answer = {
      envs: { GPUS: "a,b" },
      mounts: [{ containerPath: "/lib/gpu", hostPath: "/usr/lib/gpu", readOnly: true }],
      devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/gpu0", permissions: "rw" }],
      annotations: { "example.com/gpu": "a" },
      cdiDevices: [{ name: "example.com/gpu=0" }],
    };
    const read = readAllocations(bytesOf([answer]), 1);
    if (!read.ok) throw new Error(read.error);
    expect(read.value[0]?.response).toEqual({
      envs: new Map([["GPUS", "a,b"]]),
      mounts: [{ containerPath: "/lib/gpu", hostPath: "/usr/lib/gpu", readOnly: true }],
      devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/gpu0", permissions: "rw" }],
      annotations: new Map([["example.com/gpu", "a"]]),
      cdiDevices: ["example.com/gpu=0"],
    });
    const whole = bytesOf([answer]);
    expect(
      Buffer.from(read.value[0]?.base64 ?? "", "base64").equals(
        whole.subarray(whole.length - Buffer.from(read.value[0]?.base64 ?? "", "base64").length),
      ),
    ).toBe(true);
  });

  const mount = (hostPath: string, containerPath = "/x") => [{ mounts: [{ hostPath, containerPath }] }];
  const deviceNode = (hostPath: string, containerPath = "/dev/x", permissions = "rw") => [
    { devices: [{ hostPath, containerPath, permissions }] },
  ];
  test.each([
    [
      "more than is kept",
      [{ envs: { A: "x".repeat(100_000), B: "x".repeat(100_000), C: "x".repeat(70_000) } }],
      "bytes, more than 262144",
    ],
    [
      "a variable too long",
      [{ envs: { A: "x".repeat(131_071) } }],
      'the environment variable "A" takes 131074 bytes, and no program starts with one of more than 131072',
    ],
    ["no container", [], "no containers return in allocation response"],
    ["two for one", [{}, {}], "the answer is for 2 containers, asked was for 1"],
    [
      "a mount that climbs out",
      mount("/run/../etc"),
      'the mount\'s path on the host "/run/../etc" climbs out with `..`',
    ],
    ["a mount to where it climbs out", mount("/run", "/a/.."), 'the mount\'s path "/a/.." climbs out with `..`'],
    ["a relative mount", mount("etc"), 'the mount\'s path on the host "etc" is not absolute'],
    ["no path", mount(""), 'the mount\'s path on the host "" is not absolute'],
    ["a zero in a path", mount("/a\0b"), "is not absolute"],
    [
      "a device that climbs out",
      deviceNode("/dev/../mem"),
      'the device\'s path on the host "/dev/../mem" climbs out with `..`',
    ],
    ["a relative device", deviceNode("/dev/x", "x"), 'the device\'s path "x" is not absolute'],
    [
      "permissions of another kind",
      deviceNode("/dev/x", "/dev/x", "rwx"),
      'the permissions "rwx" of "/dev/x" are not of r, w and m',
    ],
    ["an environment variable that cannot be", [{ envs: { "A=B": "c" } }], 'the environment variable "A=B" cannot be'],
    ["a CDI device without a name", [{ cdiDevices: [{ name: "" }] }], "a CDI device has no name"],
    ["too many parts", [{ cdiDevices: Array.from({ length: 4097 }, () => ({ name: "a/b=c" })) }], "4097 parts"],
  ])("with %s is refused", (_name, answers, message) => {
    expect(readAllocations(bytesOf(answers), 1)).toEqual({ ok: false, error: expect.stringContaining(message) });
  });
  test("may have a path with a name that begins with two dots", () => {
    expect(readAllocations(bytesOf(mount("/run/..data")), 1).ok).toBe(true);
  });
  test("that cannot be decoded is an error", () => {
    for (const bytes of [[0x0a], [0x0a, 5, 1], [0x0a, 2, 0x0a, 9], [0xff]]) {
      expect(readAllocations(Buffer.from(bytes), 1), `${bytes}`).toEqual({
        ok: false,
        error: "the answer is no AllocateResponse",
      });
    }
  });
});
