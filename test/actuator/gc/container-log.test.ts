import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removeContainerLog } from "../../../actuator/containerd/logs.ts";
import { scratchFolder } from "../../kit/scratch.ts";

function logs() {
  const root = scratchFolder();
  const app = join(root, "pods", "ns_pod_uid", "app");
  mkdirSync(app, { recursive: true });
  for (const file of ["0.log", "0.log.20260101-000000", "0.log.20260101-000000.gz", "10.log", "1.log"])
    writeFileSync(join(app, file), "");
  return { root, pods: join(root, "pods"), app };
}

test("removing a container's log also removes its rotated logs, and not those of other attempts", () => {
  const { pods, app } = logs();
  expect(removeContainerLog(pods, join(app, "0.log"))).toEqual({ ok: true, value: null });
  expect(readdirSync(app).sort()).toEqual(["1.log", "10.log"]);
  expect(removeContainerLog(pods, join(app, "0.log"))).toEqual({ ok: true, value: null });
  expect(removeContainerLog(pods, join(pods, "none", "0.log"))).toEqual({ ok: true, value: null });
});

test("a log outside the pod log directory is not removed, also through a link or ..", () => {
  const { root, pods } = logs();
  const outside = join(root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "0.log"), "");
  symlinkSync(outside, join(pods, "link"));
  removeContainerLog(pods, join(outside, "0.log"));
  removeContainerLog(pods, join(pods, "link", "0.log"));
  removeContainerLog(pods, join(pods, "..", "outside", "0.log"));
  expect(existsSync(join(outside, "0.log"))).toBe(true);
});
