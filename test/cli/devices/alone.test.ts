import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { claimsDirectory, takeLock } from "../../../actuator/core/lock.ts";
import { openDevicePluginHost } from "../../../actuator/deviceplugin/host.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { PodRecords } from "../../../actuator/pods/records/records.ts";
import { healthy } from "../../actuator/deviceplugin/node-plugin.ts";
import { expectPublished } from "../published.ts";
import { ended, start } from "../run.ts";
import { deviceNode, wants } from "./device-node.ts";

test("a daemon of the same cgroup root blocks allocate and free, with its process id", async () => {
  const node = deviceNode();
  const root = node.place.at(-1) as string;
  const lock = await takeLock(claimsDirectory(), root, observeMachine().system.bootID ?? "");
  if (!lock.ok) throw new Error(lock.error);
  onTestFinished(lock.value.release);
  for (const ran of [await node.allocate(node.pod("p", [wants("a", 1)])), await node.free("ml/p")]) {
    expect([ran.code, ran.stdout]).toEqual([3, ""]);
    expect(ran.stderr).toMatch(
      new RegExp(`process ${process.pid} already writes here .*: end it first, or let that daemon run the pod`),
    );
  }
});

test("two commands for one state directory do not run at the same time", async () => {
  const node = deviceNode();
  const waits = start(["devices", "allocate", "--pod", node.pod("p", [wants("a", 1)]), ...node.place, ...node.plugins]);
  const end = ended(waits);
  await new Promise<void>((resolve) => {
    waits.stderr.on("data", (text) => /deferred until/.test(String(text)) && resolve());
  });
  const other = await node.free("ml/p", "--cgroup-root", `${node.place.at(-1)}-2`);
  expect([other.code, other.stderr]).toEqual([
    3,
    expect.stringMatching(/state directory .*process \d+ already writes/),
  ]);
  waits.kill("SIGINT");
  expect(await end).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("stopped: no device was allocated to the pod"),
  });
  expect(existsSync(node.at("dp/kubelet.sock"))).toBe(false);
});

test("another process at kubelet.sock is left alone, with advice", async () => {
  const node = deviceNode();
  const kubelet = await openDevicePluginHost({ dir: node.at("dp") });
  if (!kubelet.ok) throw new Error(kubelet.error);
  onTestFinished(() => kubelet.value.close());
  const ran = await node.allocate(node.pod("p", [wants("a", 1)]));
  expect([ran.code, ran.stdout]).toEqual([3, ""]);
  expect(ran.stderr).toMatch(/dp\/kubelet\.sock: another process answers there, such as a kubelet/);
  expect(ran.stderr).toContain("--device-plugins-directory names another");
  expect(existsSync(kubelet.value.socketPath)).toBe(true);
});

test("devices of the daemon's own pods are neither allocated nor released", async () => {
  const node = deviceNode();
  const plugin = node.plugin({ devices: healthy("g0", "g1") });
  const daemons = node.pod("served", [wants("a", 1)]);
  expect((await node.allocate(daemons)).code).toBe(0);
  // the record that the previous daemon left
  const records = PodRecords.open(node.at("state/pods"), () => {});
  if (!records.ok) throw new Error(records.error);
  const pod = JSON.parse(readFileSync(daemons, "utf8"));
  const record = { version: 1, pod, state: "active", seenAtMs: 1, admittedAtMs: 1 } as const;
  records.value.persist("uid-served", { ...record, refusal: null, end: null, backOff: {}, resize: null });
  writeFileSync(node.at("state/device-pods.json"), '{"version":1,"pods":[]}');

  const next = await node.allocate(node.pod("mine", [wants("a", 1)]));
  expect(next.code, next.stderr).toBe(0);
  expect(node.held()).toEqual(["uid-mine a: g1", "uid-served a: g0"]);
  const taken = [await node.free("uid-served"), await node.allocate(daemons)];
  expect(taken.map(({ code }) => code)).toEqual([2, 2]);
  for (const { stderr } of taken) expect(stderr).toContain("is run by the daemon of this state directory");
  expect(node.held()).toHaveLength(2);
  expect(plugin.requests.filter(({ method }) => method === "Allocate")).toHaveLength(2);
});

test("a command killed during Allocate continues with the same devices when repeated", async () => {
  const node = deviceNode();
  const plugin = node.plugin({ devices: healthy("g0", "g1"), answers: { Allocate: () => "hang" } });
  const file = node.pod("p", [wants("a", 1)]);
  const cut = start(["devices", "allocate", "--pod", file, ...node.place, ...node.plugins]);
  const end = ended(cut);
  await vi.waitUntil(() => plugin.requests.some(({ method }) => method === "Allocate"), { timeout: 90_000 });
  cut.kill("SIGKILL");
  // if the launcher has started a child, the child exits too
  await end;
  expect(node.checkpoint().entries).toMatchObject([{ podUid: "uid-p", allocResp: null }]);
  plugin.script.answers = {};
  const other = await node.allocate(node.pod("q", [wants("a", 1)]));
  expect(other.code, other.stderr).toBe(0);
  const again = await node.allocate(file);
  expect(again.code, again.stderr).toBe(0);
  expect(node.held()).toEqual(["uid-p a: g0", "uid-q a: g1"]);
  expect(node.checkpoint().entries?.every(({ allocResp }) => allocResp !== null)).toBe(true);
});

test("after a reboot the same command calls Allocate and PreStartContainer again", async () => {
  const node = deviceNode();
  const plugin = node.plugin({ devices: healthy("g0", "g1"), options: { preStartRequired: true } });
  const calls = (method: string) => plugin.requests.filter((one) => one.method === method).length;
  const file = node.pod("p", [wants("a", 1)]);
  expect((await node.allocate(file)).code).toBe(0);
  writeFileSync(node.at("state/managers/device-plugins/boot_id"), "another\n");
  const again = await node.allocate(file);
  expect(again.code, again.stderr).toBe(0);
  expect([calls("Allocate"), calls("PreStartContainer"), node.held()]).toEqual([2, 2, ["uid-p a: g0"]]);
});

test("a pod of the same name with another uid gets no second set, and can be freed by its old uid", async () => {
  const node = deviceNode();
  node.plugin({ devices: healthy("g0", "g1") });
  const file = node.pod("p", [wants("a", 1)]);
  expect((await node.allocate(file)).code).toBe(0);
  const pod = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...pod, metadata: { ...pod.metadata, uid: "uid-new" } }));
  const twice = await node.allocate(file);
  expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining("`nodewise devices free uid-p` first")]);
  writeFileSync(node.at("state/device-pods.json"), '{"version":1,"pods":[]}');
  const none = await node.free("ml/p");
  expect([none.code, none.stderr]).toEqual([
    4,
    "nodewise: no pod `ml/p` holds devices here; no pod was given any by hand\n",
  ]);
  const leak = await node.free("uid-p", "-o", "json");
  await expectPublished("devices-free", leak.stdout);
  expect([leak.code, JSON.parse(leak.stdout)]).toEqual([
    0,
    {
      pod: "uid-p",
      uid: "uid-p",
      freed: [{ container: "a", resource: "vendor.com/gpu", ids: ["g0"], numa: [] }],
    },
  ]);
  expect(node.held()).toEqual([]);
});
