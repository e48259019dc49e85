import { expect, test } from "vitest";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import { KnownReadiness, KnownVersion } from "../../../actuator/containerd/pods.ts";
import { err, ok } from "../../../api/base/result.ts";

test("the runtime's version is requested once, and again after the runtime was unreachable", async () => {
  const asked: string[] = [];
  let runtimeVersion: string | null = "2.1.4";
  const call = async (method: string) => {
    asked.push(method);
    if (runtimeVersion === null) return err({ call: method, code: "UNAVAILABLE", message: "away" });
    return ok({ runtimeName: "containerd", runtimeVersion, runtimeApiVersion: "v1" });
  };
  const known = new KnownVersion({ call } as unknown as Connection);
  expect(known.current).toBeNull();
  await known.refresh(false);
  expect(asked).toEqual([]);
  for (let turn = 0; turn < 5; turn++) await known.refresh(true);
  expect(known.current).toEqual({ name: "containerd", version: "2.1.4" });
  expect(asked).toEqual(["Version"]);

  await known.refresh(false);
  expect(known.current).toBeNull();
  runtimeVersion = null;
  await known.refresh(true);
  expect(known.current).toBeNull();
  runtimeVersion = "2.2.0";
  for (let turn = 0; turn < 5; turn++) await known.refresh(true);
  expect(known.current?.version).toBe("2.2.0");
  expect(asked).toEqual(["Version", "Version", "Version"]);
});

test("runtime conditions that are not met are faults in the kubelet's words, read every five seconds", async () => {
  let asked = 0;
  let isReady = false;
  const call = async () => {
    asked++;
    const network = { type: "NetworkReady", status: isReady, reason: "NetworkPluginNotReady", message: "no cni" };
    const other = { type: "ContainerdHasNoDeprecationWarnings", status: false, reason: "", message: "" };
    return ok({
      status: { conditions: [{ ...network, type: "RuntimeReady", status: true }, network, other] },
      info: {},
    });
  };
  const known = new KnownReadiness({ call } as unknown as Connection);
  for (let turn = 0; turn < 3; turn++) await known.refresh(true);
  expect(asked).toBe(1);
  const [fault, ...others] = known.faults;
  expect(others).toEqual([]);
  expect(fault).toMatch(
    /^container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no cni; pods with a network of their own do not start until CNI plugins/,
  );
  expect(fault).toContain("in the conf_dir of the runtime's configuration (usually /etc/cni/net.d)");
  isReady = true;
  await known.refresh(false);
  expect(known.faults).toEqual([]);
  await known.refresh(true);
  expect([asked, known.faults]).toEqual([2, []]);
});
