import { expect, test } from "vitest";
import { writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { diskSnapshot, localImage, MI } from "../contract/gc-snapshots.ts";
import { claim, claiming, DRIVER, result } from "../kit/claims.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { capturedSnapshot, partOf, subject } from "./node-subject.ts";

const GPU = "example.com/gpu";

const device = (id: string, numa: number, health = "Healthy") => ({ resource: GPU, id, health, numaNodes: [numa] });
/** The captured node with these devices; its first pod holds gpu-1. */
async function withDevices(devices: readonly ReturnType<typeof device>[]) {
  const { decide, show } = subject();
  const snapshot = capturedSnapshot();
  const [first] = snapshot.pods;
  if (first === undefined) throw new Error("no pod");
  const container = first.spec.containers[0]?.name ?? "";
  const deviceIds = new Map([[0, ["gpu-1"]]]);
  const entry = { podUid: first.metadata.uid, containerName: container, resourceName: GPU, deviceIds, allocResp: null };
  const assignments = {
    kubelet_internal_checkpoint: writeCheckpoint({ entries: [entry], registered: new Map() }),
  };
  await decide("allocatable", { snapshot: { ...snapshot, devices, devicePlugins: [{ resource: GPU }], assignments } });
  return { first, container, ...(await show("/nodes/n1")) };
}

test("a device that is held and unhealthy does not reduce the free ones", async () => {
  const { text } = await withDevices([device("gpu-0", 0), device("gpu-1", 0, "Unhealthy")]);
  expect(text("devices")).toContain(`${GPU} registered 1 held, 1 free of 2 devices, 1 not healthy`);
});

test("devices are shown by NUMA node with holders and health", async () => {
  const { first, container, html, text } = await withDevices([
    device("gpu-0", 0),
    device("gpu-1", 0),
    device("gpu-2", 1, "Unhealthy"),
  ]);
  expect(text("devices")).toMatch(/NUMA node 0 2 devices .*NUMA node 1 1 device /);
  const name = `default/${first.metadata.name}`;
  expect(text("devices")).toContain(`${GPU} registered 1 held, 1 free of 3 devices, 1 not healthy`);
  expect(text("devices")).toContain(`A ${name} ${container} ${GPU} gpu-1`);
  const titles = [...partOf(html, "devices").matchAll(/<title>([^<]*)<\/title>/g)].map((m) => m[1]);
  expect(titles).toEqual(["gpu-0: free", `gpu-1: held by ${name} ${container}`, "gpu-2: free, Unhealthy"]);
  expect(text("capacity")).toContain(`${GPU} 0 of 2 requested (0 %), 2 free ; capacity 3`);
});

test("claims are shown with why a pod does not start, and drivers with their devices' health", async () => {
  const { decide, show } = subject();
  const snapshot = capturedSnapshot();
  await decide("allocatable", { snapshot });
  expect((await show("/nodes/n1")).html).not.toContain('"#claims"');
  const reported = { PoolName: "n1", LastUpdated: snapshot.observedAt };
  const state = (device: string, Health: string) => ({ ...reported, DeviceName: device, Health });
  const Devices = { "n1/0": state("0", "Healthy"), "n1/1": state("1", "Unhealthy") };
  const given = {
    ...snapshot,
    pods: ["p", "q"].map((name) => claiming(name, [name === "p" ? "gpu" : "nic"], { nodeName: "n1" })),
    dra: {
      resourceClaims: [claim("gpu", [result("0")], ["p"]), claim("nic", [result("1")], ["other"])],
      drivers: [{ name: DRIVER }, { name: "away.example.com", registered: false }],
    },
    assignments: { dra_health_state: JSON.stringify({ [DRIVER]: { Devices } }) },
  };
  await decide("allocatable", { snapshot: given });
  const { html, text } = await show("/nodes/n1");
  expect(html).toContain('"#claims"');
  const words = text("claims");
  expect(words).toContain("Claims 1 pod does not start");
  expect(words).toMatch(
    /refused nic default\/q .*not allowed to use ResourceClaim nic .*to prepare gpu default\/p gpu/,
  );
  expect(words).toContain("away.example.com not registered not reported");
  expect(words).toContain(`${DRIVER} v1.DRAPlugin 1 Unhealthy (n1/1), 1 Healthy`);
});

test("images are shown in order of removal, with a line between the removed and the kept", async () => {
  const { decide, show } = subject();
  const images = [localImage("old", { size: `${300 * MI}` }), localImage("small", { size: `${10 * MI}` })];
  // the first pass detects the images; an hour later the disk is full
  await decide("image-gc", { snapshot: diskSnapshot("node", 0, images, 500) });
  await decide("image-gc", { snapshot: diskSnapshot("node", 3600, images, 20) });
  const { html, text } = await show("/nodes/node");
  const message = text("images");
  expect(message).toContain("98 % of 1000 MiB used, high threshold 85 %: 180 MiB wanted, down to the low one of 80 %");
  const order = [
    "localhost/old:1 300 MiB",
    "What is above would be removed (300 MiB for space)",
    "localhost/small:1 10 MiB",
    "localhost/web:1 100 MiB",
  ];
  const places = order.map((words) => message.indexOf(words));
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(message).toMatch(/localhost\/pause:1 100 MiB never 1h ago pinned/);
  expect(partOf(html, "images")).toContain("low threshold 80 %, high threshold 85 %");
  expect(message).toContain("20 MiB available thresholds: low 80 %, high 85 %");
});

test("recorded dry runs of probes are shown as lanes with status, attempts and failures", async () => {
  const { decide, show } = subject();
  const handler = { httpGet: { path: "/", port: 80 } };
  const containers = [container("app", undefined, undefined, { livenessProbe: { ...handler, periodSeconds: 5 } })];
  const probed = (name: string) => pod(name, { metadata: { namespace: "shop", uid: undefined }, spec: { containers } });
  const ask = { pod: probed("web"), outcomes: "ok,ok,fail*3,ok", seconds: 60 };
  const { id } = await decide("probes", { snapshot: capturedSnapshot(), ask });
  await decide("probes", { snapshot: capturedSnapshot(), ask: { ...ask, pod: probed("other") } });
  const { html, text } = await show("/nodes/n1");
  expect(text("probes")).toMatch(/shop\/web restarts 1 probe in 1m: 1 restart, decided .* why app status liveness/);
  expect(text("probes")).toMatch(/httpGet: \d+ attempts, 3 failed/);
  const lanes = partOf(html, "probes");
  expect(lanes).toContain(`/decisions/${id}`);
  expect(lanes).toContain("<title>ended at 20s by its liveness probe</title>");
  expect(lanes).toMatch(/aria-label="liveness probe \(httpGet\) of app: \d+ attempts, 3 failed"/);
});
