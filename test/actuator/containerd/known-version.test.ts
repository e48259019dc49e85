import { expect, test } from "vitest";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import { KnownVersion } from "../../../actuator/containerd/readiness.ts";
import { err, ok } from "../../../api/model/result.ts";

test("a runtime's version is asked for once, and anew when it was away", async () => {
  const asked: string[] = [];
  let runtimeVersion: string | null = "2.1.4";
  const call = async (method: string) => {
    asked.push(method);
    if (runtimeVersion === null) return err({ call: method, code: "UNAVAILABLE", message: "away" });
    return ok({ runtimeName: "containerd", runtimeVersion, runtimeApiVersion: "v1" });
  };
  const known = new KnownVersion({ call } as unknown as Connection);
  expect(known.current).toBeNull();
  await known.look(false);
  expect(asked).toEqual([]);
  for (let turn = 0; turn < 5; turn++) await known.look(true);
  expect(known.current).toEqual({ name: "containerd", version: "2.1.4" });
  expect(asked).toEqual(["Version"]);

  await known.look(false);
  expect(known.current).toBeNull();
  runtimeVersion = null;
  await known.look(true);
  expect(known.current).toBeNull();
  runtimeVersion = "2.2.0";
  for (let turn = 0; turn < 5; turn++) await known.look(true);
  expect(known.current?.version).toBe("2.2.0");
  expect(asked).toEqual(["Version", "Version", "Version"]);
});
