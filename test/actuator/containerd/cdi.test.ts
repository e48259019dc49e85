import { describe, expect, test } from "vitest";
import { cdiServed } from "../../../actuator/containerd/pods.ts";
import { EMPTY, fakeConnection } from "./fake-runtime.ts";

const DEVICES = { CDIDevices: [{ name: "example.com/gpu=1" }, { name: "example.com/gpu=2" }] };
const runtime = (runtimeName: string, runtimeVersion: string, config?: string) =>
  fakeConnection({
    ...EMPTY,
    Version: { runtimeName, runtimeVersion, runtimeApiVersion: "v1" },
    Status: { status: null, info: config === undefined ? {} : { config } },
  });
const ON = '{"enableCDI":true}';
const OFF = '{"enableCDI":false}';

describe("cdiServed, for CDI devices that a runtime might silently ignore,", () => {
  test.each([
    ["1.6.20~ds1", "{}", "does not know them, and would start the container without: 1.7 does"],
    ["v1.6.36", undefined, "does not know them"],
    ["0.9.0", "{}", "does not know them"],
    ["c0ffee", "{}", "does not know them"],
    ["1.7.27", OFF, "has them off: set `enable_cdi = true` in its config.toml"],
    ["v2.1.4", OFF, "has them off"],
  ])("refuses them for containerd %s, %s", async (version, config, why) => {
    const served = await cdiServed(runtime("containerd", version, config), DEVICES);
    expect(served).toEqual({
      ok: false,
      error: {
        call: "CreateContainer",
        code: "FAILED_PRECONDITION",
        message: expect.stringContaining(
          `CDI devices (example.com/gpu=1, example.com/gpu=2): containerd ${version} ${why}`,
        ),
      },
    });
  });
  test.each([
    ["containerd", "1.7.2", ON],
    ["containerd", "v2.1.4", ON],
    ["containerd", "c0ffee", ON],
    ["containerd", "v2.3.4", '{"enableCDI":null}'],
    ["containerd", "2.4.2", "{}"],
    ["containerd", "10.0.0", "no JSON"],
    ["containerd", "1.10.0", undefined],
    ["cri-o", "1.36.0", undefined],
  ])("accepts them for %s %s, %s", async (name, version, config) => {
    expect(await cdiServed(runtime(name, version, config), DEVICES)).toEqual({ ok: true, value: null });
  });
});

test("cdiServed makes no call for a container without CDI devices", async () => {
  const connection = runtime("containerd", "1.6.20", "{}");
  expect(await cdiServed(connection, {})).toEqual({ ok: true, value: null });
  expect(await cdiServed(connection, { CDIDevices: [] })).toEqual({ ok: true, value: null });
  expect(connection.asked).toEqual([]);
});

test("cdiServed refuses CDI devices when the runtime does not report its status", async () => {
  const { Status: _, ...silent } = EMPTY;
  expect(await cdiServed(fakeConnection(silent), DEVICES)).toMatchObject({
    ok: false,
    error: { code: "UNIMPLEMENTED" },
  });
});
