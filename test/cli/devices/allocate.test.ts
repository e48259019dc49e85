import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { writeCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { healthy } from "../../actuator/deviceplugin/node-plugin.ts";
import { serving } from "../../api/serving.ts";
import { expectAsShown } from "../../docs/shown.ts";
import { expectPublished } from "../published.ts";
import { deviceNode, GPU, wants } from "./device-node.ts";

const RESPONSE = {
  envs: { VISIBLE: "0,1" },
  mounts: [{ containerPath: "/lib/gpu", hostPath: "/opt/gpu", readOnly: true }],
  devices: [{ containerPath: "/dev/gpu0", hostPath: "/dev/vendor0", permissions: "rw" }],
  annotations: { "vendor.com/slot": "7" },
  cdiDevices: [{ name: "vendor.com/gpu=0" }],
};

test("devices allocate prints what the guide shows", async () => {
  const GUIDE = "docs/guide/devices.md";
  const node = deviceNode();
  const resource = "vendor.example/gpu";
  const devices = [0, 1, 2, 3].map((i) => ({
    ID: `gpu-${i}`,
    health: i === 3 ? "Unhealthy" : "Healthy",
    topology: { nodes: [{ ID: 0 }] },
  }));
  const mounts = [{ containerPath: "/usr/lib/gpu", hostPath: "/opt/gpu/lib", readOnly: true }];
  const answerOf = (ids: readonly string[]) => ({
    envs: { VISIBLE_GPUS: ids.join(",") },
    mounts,
    devices: ids.map((id) => ({ containerPath: `/dev/${id}`, hostPath: `/dev/${id}`, permissions: "rw" })),
  });
  node.plugin({
    resource,
    devices,
    answers: { Allocate: () => ({ containerResponses: [answerOf(["gpu-0", "gpu-1"])] }) },
  });
  const [trainer, second] = ["trainer", "second"].map((name) => node.pod(name, [wants("main", 2, resource)]));
  const first = await node.allocate(trainer as string);
  expectAsShown(GUIDE, "nodewise devices allocate --pod trainer.yaml", first.stderr + first.stdout);
  const refused = await node.allocate(second as string);
  const [last] = refused.stderr.trimEnd().split("\n").slice(-1);
  expectAsShown(GUIDE, "nodewise devices allocate --pod second.yaml 2>&1 | tail -1", last as string);
  expectAsShown(GUIDE, "nodewise devices free ml/trainer", (await node.free("ml/trainer")).stdout);
  const { stdout } = await node.history("--limit", "1");
  expectAsShown(GUIDE, "nodewise devices history --limit 1", stdout);
});

test("a pod gets its devices without daemon and runtime, the same ones again, and releases them", async () => {
  const node = deviceNode();
  const plugin = node.plugin({
    devices: healthy("g0", "g1", "g2", "g3"),
    options: { preStartRequired: true },
    answers: { Allocate: () => ({ containerResponses: [RESPONSE] }) },
  });
  const calls = (method: string) => plugin.requests.filter((one) => one.method === method);
  const file = node.pod("train", [wants("main", 2)]);
  const first = await node.allocate(file);
  expect([first.code, first.stdout.split("\n")], first.stderr).toEqual([
    0,
    [
      "allocated: ml/train",
      "",
      "CONTAINER  GETS",
      "main       devices      vendor.com/gpu    g0 g1",
      "           device node  /dev/gpu0         from /dev/vendor0  rw",
      "           mount        /lib/gpu          from /opt/gpu      read-only",
      "           env          VISIBLE           0,1",
      "           annotation   vendor.com/slot   7",
      "           CDI device   vendor.com/gpu=0",
      "",
    ],
  ]);
  expect(first.stderr).toMatch(/^nodewise: deferred until the device plugin of vendor\.com\/gpu has registered/);
  expect(node.held()).toEqual(["uid-train main: g0 g1"]);
  expect([calls("Allocate").length, calls("PreStartContainer").length]).toEqual([1, 1]);
  expect(existsSync(node.at("dp/kubelet.sock"))).toBe(false);

  // a kubelet ran here before, and its pod may still run
  const entry = { podUid: "uid-theirs", containerName: "main", resourceName: GPU, allocResp: null };
  const theirs = { entries: [{ ...entry, deviceIds: new Map([[-1, ["g0"]]]) }], registered: new Map() };
  writeFileSync(node.at("dp/kubelet_internal_checkpoint"), writeCheckpoint(theirs));
  const again = await node.allocate(file, "-o", "json");
  expect(again.code, again.stderr).toBe(0);
  await expectPublished("devices-allocate", again.stdout);
  expect(again.stderr).toContain("a kubelet gave devices of vendor.com/gpu to pods uid-theirs (");
  expect(JSON.parse(again.stdout)).toMatchObject({
    pod: { namespace: "ml", name: "train", uid: "uid-train" },
    containers: [{ container: "main", resources: [{ resource: GPU, ids: ["g0", "g1"], numa: [] }] }],
  });
  expect([calls("Allocate").length, calls("PreStartContainer").length]).toEqual([1, 1]);

  const other = await node.allocate(node.pod("infer", [wants("a", 1), wants("b", 1)]));
  expect(other.code, other.stderr).toBe(0);
  expect(node.held()).toEqual(["uid-infer a: g2", "uid-infer b: g3", "uid-train main: g0 g1"]);

  const full = await node.allocate(node.pod("late", [wants("main", 1)]));
  expect([full.code, full.stdout]).toEqual([1, ""]);
  expect(full.stderr).toContain("refused: ml/late: UnexpectedAdmissionError: Allocate failed due to");
  const freed = await node.free("ml/train");
  expect([freed.code, freed.stdout]).toEqual([0, "freed: 2 devices of vendor.com/gpu of container main: g0 g1\n"]);
  const { pods } = JSON.parse(readFileSync(node.at("state/device-pods.json"), "utf8"));
  expect(pods.map(({ uid }: { uid: string }) => uid)).toEqual(["uid-infer"]);
  const late = await node.allocate(node.at("late.json"));
  expect(late.code, late.stderr).toBe(0);
  expect(node.held()).toEqual(["uid-infer a: g2", "uid-infer b: g3", "uid-late main: g0"]);

  const message = (await node.history()).stdout;
  expect(message).toMatch(/given-back +vendor\.com\/gpu +2 +g0 g1 +ml\/train +main/);
  expect(message).toMatch(/allocated +vendor\.com\/gpu +2 +g0 g1 +ml\/train +main/);
  expect(message).toMatch(/registered +vendor\.com\/gpu/);
});

test("init containers' devices are reused by the containers, and sidecars keep theirs", async () => {
  const node = deviceNode();
  node.plugin({ devices: healthy("g0", "g1", "g2") });
  const probed = { ...wants("main", 1), livenessProbe: { exec: { command: ["true"] } } };
  const side = { ...wants("side", 1), restartPolicy: "Always" };
  const file = node.pod("p", [probed], { initContainers: [wants("init", 2), side], runtimeClassName: "kata" });
  const ran = await node.allocate(file, "-o", "json");
  expect(ran.code, ran.stderr).toBe(0);
  const ids = JSON.parse(ran.stdout).containers.map((one: { container: string; resources: { ids: string[] }[] }) => [
    one.container,
    one.resources[0]?.ids,
  ]);
  expect(ids.map(([name]: [string]) => name)).toEqual(["init", "side", "main"]);
  const [init, sidecar, main] = ids.map(([, list]: [string, string[]]) => list) as [string[], string[], string[]];
  expect(init).toContain(main[0]);
  expect(main).not.toEqual(sidecar);
});

test("a manifest is identified by its pod's name, wherever its file is, until its content changes", async () => {
  const node = deviceNode();
  node.plugin({ devices: healthy("g0", "g1", "g2") });
  const manifest = (count: number) =>
    `metadata: {name: train}\nkind: Pod\napiVersion: v1\nspec:\n  containers:\n  - {name: c, image: i, resources: {limits: {${GPU}: ${count}}}}\n`;
  writeFileSync(node.at("a.yaml"), manifest(1));
  writeFileSync(node.at("b.yaml"), manifest(1));
  const first = await node.allocate(node.at("a.yaml"));
  expect([first.code, first.stdout], first.stderr).toEqual([0, expect.stringMatching(/^allocated: default\/train\n/)]);
  const held = node.held();
  expect((await node.allocate(node.at("b.yaml"))).code).toBe(0);
  expect([node.held(), held.length]).toEqual([held, 1]);
  writeFileSync(node.at("b.yaml"), manifest(2));
  const changed = await node.allocate(node.at("b.yaml"));
  expect([changed.code, changed.stderr]).toEqual([
    2,
    expect.stringContaining("default/train has devices as another pod"),
  ]);
  expect(await node.free("default/train")).toMatchObject({ code: 0 });
  expect((await node.allocate(node.at("b.yaml"))).code).toBe(0);
});

test("the plugin is asked for its preferred allocation", async () => {
  const node = deviceNode();
  const plugin = node.plugin({
    devices: healthy("g0", "g1", "g2", "g3"),
    options: { getPreferredAllocationAvailable: true },
    answers: { GetPreferredAllocation: () => ({ containerResponses: [{ deviceIDs: ["g3", "g1"] }] }) },
  });
  const ran = await node.allocate(node.pod("p", [wants("main", 2)]));
  expect(ran.code, ran.stderr).toBe(0);
  expect(plugin.requests.map(({ method }) => method)).toContain("GetPreferredAllocation");
  expect(node.held()).toEqual(["uid-p main: g1 g3"]);
});

test("a plugin's refusal is printed, and no device stays held", async () => {
  const node = deviceNode();
  node.plugin({ devices: healthy("g0"), answers: { Allocate: () => new Error("out of order") } });
  const ran = await node.allocate(node.pod("p", [wants("main", 1)]));
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  expect(ran.stderr).toContain(
    "refused: ml/p: UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = out of order, which is unexpected",
  );
  expect(node.held()).toEqual([]);
  expect(JSON.parse(readFileSync(node.at("state/device-pods.json"), "utf8")).pods).toEqual([]);
});

test("a plugin that does not register: prints how long and where it waited, and what to do", async () => {
  const node = deviceNode();
  const ran = await node.allocate(node.pod("p", [wants("main", 1)]), "--wait", "1");
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  expect(ran.stderr).toContain("deferred until the device plugin of vendor.com/gpu has registered, at most 1 s");
  expect(ran.stderr).toMatch(/vendor\.com\/gpu.*is it running, and does it register at .*\/dp\/kubelet\.sock\?/);
  expect(existsSync(node.at("state/device-pods.json"))).toBe(false);
});

test.each([
  ["no device", [{ name: "a", image: "b:1" }], /ml\/p asks for no device: give a container `resources: /],
  ["half a device", [wants("a", 0.5)], /spec\.containers\[0\]\.resources\.limits.*must be an integer/],
  ["no container", [], /spec\.containers: /],
])("a pod that requests %s is refused with the place", async (_name, containers, message) => {
  const node = deviceNode();
  const ran = await node.allocate(node.pod("p", containers));
  expect([ran.code, ran.stdout]).toEqual([2, ""]);
  expect(ran.stderr).toMatch(message);
  expect(existsSync(node.at("dp/kubelet.sock"))).toBe(false);
});

test("a directory that is no absolute path is reported by its flag", async () => {
  const node = deviceNode();
  const ran = await node.allocate(node.pod("p", [wants("main", 1)]), "--plugins-registry-directory", "dp");
  expect(ran.code).toBe(2);
  expect(ran.stderr).toMatch(/^nodewise: --plugins-registry-directory: must be a path from `\/`.* not the text `dp`/);
});

test("two pods in a file, or an unreadable pod record: no device is allocated", async () => {
  const node = deviceNode();
  const file = node.pod("p", [wants("main", 1)]);
  const pod = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(node.at("two.json"), JSON.stringify({ apiVersion: "v1", kind: "List", items: [pod, pod] }));
  const two = await node.allocate(node.at("two.json"));
  expect([two.code, two.stderr]).toEqual([2, expect.stringMatching(/two\.json holds 2 pods: give a file with one/)]);
  writeFileSync(node.at("state/device-pods.json"), '{"version":1,"pods":[{"uid":7}]}');
  for (const ran of [await node.allocate(file), await node.free("ml/p")]) {
    expect(ran.code).toBe(3);
    expect(ran.stderr).toMatch(
      /device-pods\.json: pods\.0\.namespace: .*: devices of pods that it names would be allocated/,
    );
  }
});

test("with an API the API decides; while it is unreachable the command does, and reports it later", async () => {
  const node = deviceNode();
  node.plugin({ devices: healthy("g0", "g1") });
  const { api } = await serving({ threads: 0 });
  const decided = async (): Promise<readonly { kind: string; node: string }[]> => {
    const answer = await fetch(`${api.url}/v1/nodes/dn1/decisions`);
    return ((await answer.json()) as { decisions: { kind: string; node: string }[] }).decisions;
  };
  const at = (url: string) => ["--node-name", "dn1", "--api", url];
  const first = await node.allocate(node.pod("p", [wants("a", 1)]), ...at(api.url));
  expect(first.code, first.stderr).toBe(0);
  expect((await decided()).map(({ kind }) => kind)).toEqual(["devices"]);
  const away = await node.allocate(node.pod("q", [wants("a", 1)]), ...at("http://127.0.0.1:1"));
  expect(away.code, away.stderr).toBe(0);
  expect(away.stderr).toContain("deciding here");
  expect(node.held()).toEqual(["uid-p a: g0", "uid-q a: g1"]);
  const again = await node.allocate(node.at("q.json"), ...at(api.url));
  expect(again.code, again.stderr).toBe(0);
  expect((await decided()).length).toBeGreaterThanOrEqual(3);
});
