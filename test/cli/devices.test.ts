import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { devicesText } from "../../api/cli/devices/devices.ts";
import { plainPaint } from "../../api/text/style.ts";
import { AT, deviceRow, nodeStatus } from "../kit/node-status.ts";
import { run } from "./run.ts";
import { statusServer } from "./status-server.ts";

const BAD = "\u001b[2J\u202e";
const GPU = deviceRow("vendor.com/gpu");
const NIC = deviceRow("vendor.com/nic", {
  plugin: "stopped",
  endpoint: "/p/nic.sock",
  capacity: 1,
  allocatable: 0,
  allocated: 1,
  flips: 0,
  numa: [{ node: -1, devices: 1, allocated: 1 }],
  holders: [
    { pod: "shop/web", uid: "uid-web", container: "app", ids: ["eth1"], numa: [], isPending: false },
    { pod: "ml/train", uid: "uid-train", container: "main", ids: ["eth1"], numa: [], isPending: true },
  ],
  pending: 1,
});
const STATUS = nodeStatus({ devices: [GPU, NIC] });

let now: NodeStatus = STATUS;
const daemon = statusServer(() => now);
async function ask(...args: string[]): Promise<string> {
  const ran = await run(["devices", ...args, "--status-url", daemon.url]);
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  return ran.stdout;
}

test("nodewise devices prints a row per resource with its use by NUMA node, and per holding container", async () => {
  expect((await ask()).split("\n")).toEqual([
    "n1 · enforce · containerd 2.1.4 · pass 12 2s ago: 48 ms, 2 written, 1 drifted, decided here",
    "",
    "RESOURCE        PLUGIN      CAPACITY  ALLOCATABLE  ALLOCATED        HELD BY NUMA NODE  FLIPS  ENDPOINT",
    "vendor.com/gpu  registered         4            3          2  ██·×  0: 2/2  1: 0/2         1  /var/lib/kubelet/device-plugins/gpu.sock",
    "vendor.com/nic  stopped            1            0          1  █                               /p/nic.sock",
    "  1 container without the plugin's answer yet",
    "█ held   · free   × not healthy",
    "",
    "POD       CONTAINER  RESOURCE        DEVICES      NUMA",
    "ml/train  main       vendor.com/nic  eth1               its plugin has not answered",
    "shop/web  app        vendor.com/gpu  gpu-0 gpu-1  0",
    "                     vendor.com/nic  eth1",
    "",
  ]);
});

test("nodewise devices prints data, and what a stopped daemon last wrote", async () => {
  expect(JSON.parse(await ask("-o", "json"))).toEqual({ at: AT, nodeName: "n1", devices: [GPU, NIC] });
  writeFileSync(join(daemon.scratch, "status.json"), JSON.stringify(STATUS));
  const { code, stdout } = await run(["devices", "--state-dir", daemon.scratch]);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^as process 4711 last wrote it, .*\nn1 · enforce[\s\S]*gpu-0/),
  ]);
});

test("nodewise devices says when the daemon serves no plugins, and when none has registered", async () => {
  now = nodeStatus();
  const [off, data] = [await ask(), JSON.parse(await ask("-o", "json"))];
  now = nodeStatus({ devices: [] });
  const none = await ask();
  now = STATUS;
  expect(off).toContain("\nThis daemon serves no device plugins: with `devicePlugins: serve` in its settings it does");
  expect(data.devices).toBeNull();
  expect(none).toContain("\nno device plugin has registered\n");
});

test("names from plugins are escaped so that they cannot move the cursor", () => {
  const holder = { pod: `a/b${BAD}`, uid: "u", container: `c${BAD}`, ids: [`id${BAD}`], numa: [], isPending: false };
  const row = deviceRow(`evil.com/${BAD}`, { endpoint: `/p/${BAD}`, holders: [holder] });
  const terminal = { columns: 400, paint: plainPaint, write: () => {}, warn: () => {} };
  const text = devicesText([row], terminal);
  for (const shown of ["evil.com/␛[2J\\u202e", "/p/␛[2J\\u202e", "a/b␛[2J\\u202e", "c␛[2J\\u202e", "id␛[2J\\u202e"])
    expect(text).toContain(shown);
  expect(text).not.toContain("\u001b");
});

test.each([140, 100, 72])("the device tables keep within %d columns", (columns) => {
  const terminal = { columns, paint: plainPaint, write: () => {}, warn: () => {} };
  const ids = Array.from({ length: 40 }, (_, i) => `GPU-0000-1111-2222-${i}`);
  const holder = { pod: "team/training-job", uid: "u", container: "trainer", ids, numa: [0, 1], isPending: false };
  const big = deviceRow("vendor.com/gpu", { capacity: 64, allocatable: 64, allocated: 40, holders: [holder] });
  const lines = devicesText([big, NIC], terminal).split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
  expect(lines.join("\n")).toContain("vendor.com/gpu");
});

test("nodewise devices exits with 4 without a daemon, and with 2 for a wrong --watch", async () => {
  const gone = await run(["devices", "--status-url", "http://127.0.0.1:1"]);
  expect([gone.code, gone.stdout]).toEqual([4, ""]);
  expect(gone.stderr).toMatch(/^nodewise: http:\/\/127\.0\.0\.1:1 does not answer/);
  const wrong = await run(["devices", "--watch", "0"]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/Expected seconds from 0\.1 to 3600/)]);
  mkdirSync(join(daemon.scratch, "broken"));
  writeFileSync(
    join(daemon.scratch, "broken", "status.json"),
    JSON.stringify({ ...STATUS, devices: [{ resource: 1 }] }),
  );
  const broken = await run(["devices", "--state-dir", join(daemon.scratch, "broken")]);
  expect([broken.code, broken.stderr]).toEqual([4, expect.stringMatching(/no node status: devices\.0\.resource: /)]);
});
