import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { libraryMachine } from "../../api/cli/inputs/machine-library.ts";
import { createToken } from "../../api/http/auth/tokens.ts";
import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import { decisionRow, resultRow, value } from "../contract/store-rows.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { realRuntime, renamed } from "../kit/real-node.ts";
import { many } from "../kit/snapshots.ts";
import { capturedSnapshot, partOf, readable, subject } from "./node-subject.ts";

const JSON_TYPE = { "content-type": "application/json" };

const report = (decisionId: string, seq: number, dryRun: boolean, steps: readonly object[]) => ({
  ...resultRow({ seq, failedCount: 1, atMs: Date.now() }),
  id: `r-${decisionId}-${seq}`,
  body: JSON.stringify({ at: "2026-11-21T06:25:00Z", dryRun, complete: true, steps }),
});

describe("the page of the captured node", () => {
  test("shows capacity, allocatable and requested amounts in the node's own numbers", async () => {
    const { decide, show } = subject();
    await decide("allocatable", { snapshot: capturedSnapshot() });
    const { html, text, status } = await show("/nodes/n1");
    expect(status).toBe(200);
    const capacity = text("capacity");
    expect(capacity).toContain("cpu 1.8 of 1.8 requested (100 %), 0 free ; capacity 2");
    expect(capacity).toContain("pods 11 of 20 requested (55 %), 9 free ; capacity 20");
    expect(capacity).toContain("memory 492 MiB of 22.1 GiB requested (2 %), 21.6 GiB free ; capacity 23.5 GiB");
    expect(text("capacity-numbers")).toContain("memory 23.5 GiB 512 MiB 512 MiB 500 MiB 22.1 GiB 492 MiB 21.6 GiB");
    expect(html).toContain(`<span title="${24684092 * 1024} bytes">23.5 GiB</span>`);
    expect(text("head")).toMatch(/Kubelet v1\.36\.3 .*Kernel 6\.18\.44-fc-v657 .*Cgroups v1, cgroupfs Pods 11/);
    expect(text("head")).toContain("allocatable decided");
  });

  test("counts no requests of ended pods", async () => {
    const { decide, show } = subject();
    const snapshot = capturedSnapshot();
    const pods = snapshot.pods.map((pod) => ({ ...pod, status: { phase: "Succeeded" } }));
    await decide("allocatable", { snapshot: { ...snapshot, pods } });
    expect((await show("/nodes/n1")).text("capacity")).toContain("pods 0 of 20 requested (0 %), 20 free");
  });

  test("shows pods that the kubelet refused or evicted in its words, and in the tile of refusals", async () => {
    const { app, show } = subject();
    const snapshot = capturedSnapshot();
    const ended = (name: string, status: object) => ({ ...pod(name, { status: { phase: "Failed", ...status } }) });
    const refused = {
      reason: "OutOfcpu",
      message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000",
    };
    const evicted = { reason: "Evicted", message: "The node was low on resource: memory. " };
    const pods = [...snapshot.pods, ended("full", evicted), ended("big", refused), ended("job", {})];
    const body = JSON.stringify({ ...snapshot, pods });
    await app.request("http://localhost/v1/nodes/n1/snapshot", { method: "PUT", body, headers: JSON_TYPE });
    const { html, text } = await show("/nodes/n1");
    expect(text("pods")).toContain("11 pods");
    expect(text("pods")).toContain("2 more pods failed, 1 of them refused by the kubelet");
    expect(text("pods")).toMatch(
      /default\/big OutOfcpu Pod was rejected: Node didn't have enough resource: cpu, requested: 2000 default\/full Evicted The node was low/,
    );
    expect(text("pods")).not.toContain("default/job");
    expect(readable(html)).toContain("Refused 1 OutOfcpu");
    const why = await show("/nodes/n1/pods/default/big");
    expect(readable(why.html)).toContain("Node didn't have enough resource: cpu, requested: 2000");
  });

  test("shows every file of the cgroups decision with its value", async () => {
    const { decide, show } = subject();
    const { decision } = await decide("cgroups", { snapshot: capturedSnapshot() });
    const { html, text } = await show("/nodes/n1");
    const { cgroups } = decision as CgroupsDecision;
    expect(text("cgroups")).toContain(`${cgroups.length} cgroups of 11 pods`);
    expect(text("cgroups")).toContain("no results were reported");
    for (const { path, level, files } of cgroups) {
      if (level === "container") continue;
      const own = readable(partOf(html, `cgroup-${path}`));
      for (const file of files) expect(own).toContain(`${file.path} ${file.value}`);
    }
  });

  test("shows reported beside wanted values, with a count while folded", async () => {
    const { decide, show, store } = subject();
    const { id, decision } = await decide("cgroups", { snapshot: capturedSnapshot() });
    const pod = (decision as CgroupsDecision).cgroups.find(({ level }) => level === "pod");
    const [file] = pod?.files ?? [];
    if (pod === undefined || file === undefined) throw new Error("no pod");
    const step = { op: "write", path: pod.path, file: file.path, to: file.value, before: "7", message: "because" };
    const other = { op: "rmdir", path: "/kubepods/podgone", status: "planned", before: null, message: "an orphan" };
    value(await store.addResults(id, [report(id, 1, true, [{ ...step, status: "planned" }, other])]));
    const before = await show("/nodes/n1");
    expect(before.text("cgroups-title")).toContain("2 differ");
    expect(before.text(`cgroup-${pod.path}`)).toMatch(/^\S+ 1 differs /);
    expect(before.text(`cgroup-${pod.path}`)).toContain(`${file.path} ${file.value} 7 differs, left as it is because`);
    expect(before.text("cgroup-/kubepods")).toMatch(/^\/kubepods 11 pods 1 differs /);
    expect(before.text("cgroups-others")).toContain("/kubepods/podgone rmdir nothing differs, left as it is");
    expect(before.text("cgroups")).toContain("by an actuator in observe mode: 2 files or cgroups not as decided");
    value(await store.addResults(id, [report(id, 2, false, [{ ...step, status: "applied" }])]));
    const after = await show("/nodes/n1");
    expect(after.text("cgroups-title")).toContain("1 put right");
    expect(after.text(`cgroup-${pod.path}`)).toMatch(/^\S+ 1 put right /);
    expect(after.text("cgroup-/kubepods")).toContain("as wanted");
    const old = { ...report(id, 3, false, [{ ...step, status: "failed" }]), atMs: Date.now() - 3_600_000 };
    value(await store.addResults(id, [old]));
    const later = await show("/nodes/n1");
    expect(later.text("cgroups-title")).toContain("no drift");
    expect(later.text("cgroups")).toMatch(/Last reported at .* The passes since had nothing to report/);
  });

  test("uses the newest report, as the nodes page does, and a missing cgroup has no wanted value", async () => {
    const { decide, show, store } = subject();
    const { id, decision } = await decide("cgroups", { snapshot: capturedSnapshot() });
    const pod = (decision as CgroupsDecision).cgroups.find(({ level }) => level === "pod");
    if (pod === undefined) throw new Error("no pod");
    const failed = { op: "write", path: "/kubepods", file: "cpu.shares", to: "2", status: "failed", message: "no" };
    const mkdir = { op: "mkdir", path: pod.path, status: "planned", before: null, message: "missing" };
    value(await store.addResults(id, [report(id, 1, false, [failed, { ...failed, file: "memory.limit_in_bytes" }])]));
    value(await store.addResults(id, [{ ...report(id, 2, true, [mkdir]), okCount: 1, failedCount: 0 }]));
    const { text } = await show("/nodes/n1");
    expect(text("cgroups-title")).toContain("1 differs");
    expect(text(`cgroup-${pod.path}`)).toContain("nothing: its cgroup is not there");
    expect(text(`cgroup-${pod.path}`).split(pod.files[0]?.path ?? "")[1]).not.toMatch(/^ \S+ as wanted/);
    expect(value(await store.listFleet(0, "n1"))[0]?.report).toMatchObject({ okCount: 1, failedCount: 0 });
  });

  test("shows CPUs, memory and images by owner, as decided", async () => {
    const { decide, show } = subject();
    await decide("cpus", { snapshot: { ...capturedSnapshot(), runtime: realRuntime() } });
    const { html, text } = await show("/nodes/n1");
    expect(text("cpus")).toContain("2 CPUs; cpuManagerPolicy static: reserved 0, shared pool 0 (1 CPU).");
    expect(text("cpus")).toContain("A default/guar-int c 1 1 0");
    expect(partOf(html, "cpus")).toContain("<title>CPU 1, core 1: default/guar-int c</title>");
    expect(partOf(html, "cpus")).toContain("<title>CPU 0, core 0: reserved for the system</title>");
    expect(text("memory")).toContain("NUMA node 0 1.5 GiB reserved for the system, 212 MiB held by containers");
    expect(text("memory")).toContain("default/guar-int c memory 128 MiB 0");
    expect(text("images")).toMatch(
      /2 images, 2\.7 MiB .*Nothing would be removed: all below is kept .*localhost\/busybox:1/,
    );
    expect(text("images")).toContain("in use by default/");
  });
});

const SECTIONS: Readonly<Record<string, string>> = {
  capacity: "the node's capacity is not known",
  eviction: "an eviction pass needs observedAt, pods, stats",
  cgroups: "To post in the snapshot: cgroup.version , pods",
  cpus: "which CPUs the machine has. To post in the snapshot: machine.cpus",
  memory: "how much memory each NUMA node has. To post in the snapshot: machine.numaNodes",
  devices: "No device plugin has reported a device. To post in the snapshot: devices",
  images: "an image collection needs observedAt, runtime.images, runtime.containers",
  probes: "No dry run of a pod’s probes is recorded",
  decisions: "None yet.",
};
describe("unknown parts of the node page", () => {
  test.each(Object.entries(SECTIONS))("say so in place of %s", async (id, words) => {
    const { app, show } = subject();
    const body = JSON.stringify({ node: { metadata: { name: "bare" } } });
    const headers = { "content-type": "application/json" };
    await app.request("http://localhost/v1/nodes/bare/snapshot", { method: "PUT", headers, body });
    expect((await show("/nodes/bare")).text(id)).toContain(words);
  });

  test("are those of a node without a snapshot, or with a pruned one", async () => {
    const { show, store } = subject();
    value(await store.record({ decision: decisionRow({ node: "quiet", kind: "allocatable" }) }));
    const never = await show("/nodes/quiet");
    expect(never.status).toBe(200);
    expect(never.text("snapshot")).toMatch(
      /No snapshot of this node was posted yet.*nodewise snapshot > snapshot.json/,
    );
    expect(never.text("decisions")).toContain("allocatable");
    expect(never.html).not.toContain('id="capacity"');
    const gone = subject({ store: { ...store, latestSnapshot: async () => ({ ok: true, value: null }) } });
    await gone.decide("cgroups", { snapshot: capturedSnapshot() });
    expect((await gone.show("/nodes/n1")).text("snapshot")).toContain("is no longer stored");
  });

  test("are those of a snapshot, reports and passes of another version", async () => {
    const { decide, show, store } = subject();
    const { id } = await decide("cgroups", { snapshot: capturedSnapshot() });
    value(await store.addResults(id, [{ ...report(id, 1, true, []), body: '{"steps":[null,1,{"path":7}]}' }]));
    value(
      await store.record({
        decision: decisionRow({ node: "n1", kind: "eviction", verdict: "calm", body: '{"decision":{"old":true}}' }),
      }),
    );
    value(await store.record({ decision: decisionRow({ node: "n1", kind: "probes", body: '{"decision":[]}' }) }));
    const page = await show("/nodes/n1");
    expect(page.status).toBe(200);
    expect(page.text("eviction")).toContain("what is recorded cannot be read by this version");
    expect(page.text("cgroups-title")).toContain("no drift");
    const lists = ["thresholds", "conditions", "evicted", "forecast", "spared", "warnings"].map((name) => [name, []]);
    const strange = { ...Object.fromEntries(lists), rankings: [{}], reclaim: null };
    const body = JSON.stringify({ decision: strange, next: { samples: [null, { signal: "x" }, { atMs: "y" }] } });
    const late = { decidedAtMs: Date.now() + 1000, policyVersion: "kubelet-1.36.3+1" };
    value(await store.record({ decision: decisionRow({ node: "n1", kind: "eviction", body, ...late }) }));
    const probes = JSON.stringify({
      decision: { endMs: 5, containers: [{ runs: [], started: [], ready: [], probes: [{}] }] },
    });
    value(await store.record({ decision: decisionRow({ node: "n1", kind: "probes", body: probes, ...late }) }));
    const strangers = await show("/nodes/n1");
    expect(strangers.status).toBe(200);
    for (const id of ["eviction", "probes"])
      expect(strangers.text(id)).toContain("What the policy kubelet-1.36.3+1 decided cannot be drawn by this version.");
    const row = value(await store.latestSnapshot("n1"));
    if (row === null) throw new Error("no snapshot");
    const pods = [{ metadata: {} }];
    value(
      await store.putSnapshot({
        ...row,
        id: "old",
        storedAtMs: row.storedAtMs + 10_000,
        body: JSON.stringify({ pods }),
      }),
    );
    const old = await show("/nodes/n1");
    expect(old.status).toBe(200);
    expect(old.text("snapshot")).toContain("cannot be read by this version: pods[0].metadata.name");
    value(await store.putSnapshot({ ...row, id: "broken", storedAtMs: row.storedAtMs + 10_001, body: "{" }));
    expect((await show("/nodes/n1")).text("snapshot")).toContain("cannot be read by this version");
  });
});

test("an unknown node gives 404 with similar names", async () => {
  const { decide, show } = subject();
  await decide("allocatable", { snapshot: capturedSnapshot() });
  const page = await show("/nodes/n2");
  expect(page.status).toBe(404);
  expect(page.html).toContain('<a href="/nodes/n1">n1</a>');
  expect((await show("/nodes/n1?since=yesterday")).status).toBe(400);
});

test("a node's token gives access to its own pages only", async () => {
  const { app, decide, store } = subject();
  for (const name of ["n1", "n2"]) {
    await decide("allocatable", { snapshot: renamed(capturedSnapshot(), name) });
  }
  const { token } = value(await createToken(store, { name: "own", scopes: ["read"], node: "n1", now: Date.now() }));
  const headers = { accept: "text/html", authorization: `Bearer ${token}` };
  const statusOf = async (path: string) => (await app.request(`http://localhost${path}`, { headers })).status;
  expect(await statusOf("/nodes/n1")).toBe(200);
  expect(await statusOf("/nodes/n1/decisions")).toBe(200);
  expect(await statusOf("/nodes/n2")).toBe(403);
  expect(await statusOf("/nodes/n2/decisions")).toBe(403);
});

test("the page of a node with 256 CPUs and 512 pods has less than 150 KB", async () => {
  const { app, show } = subject();
  const pods = many(512, (i) =>
    pod(`pod-${i}`, {
      metadata: { namespace: "shop", uid: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}` },
      spec: { containers: [container("app", { cpu: `${i}m`, memory: `${i}Mi` }), container("b")] },
      status: { phase: "Running" },
    }),
  );
  const machine = libraryMachine("epyc-2s-nps1")?.machine;
  const cgroup = { version: 2, driver: "systemd" };
  const body = JSON.stringify({ node: { metadata: { name: "big" } }, pods, machine, cgroup });
  const headers = { "content-type": "application/json" };
  await app.request("http://localhost/v1/nodes/big/snapshot", { method: "PUT", headers, body });
  const { html, text } = await show("/nodes/big");
  expect(text("cgroups")).toContain("of 512 pods");
  expect(html.match(/class="cell /g)).toHaveLength(256);
  expect(gzipSync(html).length).toBeLessThan(150_000);
});

test("the table of pods has requests, use and state of each, in the order of eviction", async () => {
  const { decide, show } = subject();
  const snapshot = capturedSnapshot();
  const [first, second] = (snapshot.pods as unknown as { metadata: { name: string; uid: string } }[]).slice(0, 2);
  const status = (restarts: readonly number[]) => ({
    phase: "Running",
    containerStatuses: restarts.map((restartCount, i) => ({ name: `c${i}`, restartCount })),
  });
  const pods = snapshot.pods.map((pod, i) => (i < 2 ? { ...pod, status: status(i === 0 ? [2, 1] : [0]) } : pod));
  Object.assign((pods[0] as { status: { containerStatuses: object[] } }).status.containerStatuses[0] ?? {}, {
    allocatedResourcesStatus: [
      {
        name: "claim:gpu",
        resources: [{ resourceID: "gpu.example.com/n1/gpu-0", health: "Unhealthy", message: "hot" }],
      },
      { name: "example.com/nic", resources: [{ resourceID: "nic-1", health: "Healthy" }, { resourceID: "nic-2" }] },
    ],
  });
  const reported = (snapshot.stats as unknown as { pods: { podRef: { uid: string } }[] }).pods;
  const stats = reported.map((of) =>
    of.podRef.uid === first?.metadata.uid
      ? {
          ...of,
          cpu: { usageNanoCores: 240_000_000, throttledPermille: 125, psi: { full: { avg10: 99, avg60: 12.34 } } },
        }
      : of,
  );
  const plain = { ...snapshot, pods, stats: { ...snapshot.stats, pods: reported } };
  await decide("eviction", { snapshot: plain });
  const columns = async (): Promise<readonly string[]> => {
    const table = partOf((await show("/nodes/n1?list=pods")).html, "pods");
    return [...table.matchAll(/<th class="[^"]*">([^<]*)</g)].map((m) => m[1] ?? "");
  };
  const known = ["Restarts", "QoS", "Priority", "Try"];
  const memory = ["Memory use", "Memory request", "Memory limit"];
  // a value that is unknown for all pods has no column
  expect(await columns()).toEqual(["Eviction order", ...memory, "CPU request", "CPU limit", ...known]);
  await decide("eviction", { snapshot: { ...plain, stats: { ...snapshot.stats, pods: stats } } });
  expect(await columns()).toEqual([
    ...["Eviction order", ...memory, "CPU use", "CPU request", "CPU limit", "Throttled", "CPU wait", ...known],
  ]);
  const { html } = await show("/nodes/n1?list=pods");
  const rows = partOf(html, "pods").split("<tr>").slice(2).map(readable);
  const rowOf = (name: string | undefined) => rows.find((row) => row.includes(`/${name} `))?.replaceAll(/\s+/g, " ");
  expect(rowOf(first?.metadata.name)).toMatch(/ c0: device gpu.example.com\/n1\/gpu-0 \(claim:gpu\) is Unhealthy /);
  expect(html).not.toContain("nic-");
  expect(rowOf(first?.metadata.name)).toMatch(/ 240m – – 13 % 12 % 3 BestEffort 0 – *$/);
  expect(readable(partOf(html, "pods"))).toMatch(
    /\d+ pods: first those that would be evicted for memory, in that order, then the others by use\..*Throttled: the share of .*CPU wait: the share of /s,
  );
  expect(rowOf(second?.metadata.name)).toMatch(/ 0 Burstable 0 resize *$/);
  expect(html).toContain('href="/what-if?node=n1&amp;resize=default%2Fburst-lim+c+cpu%3D100m%2Cmemory%3D64Mi#result"');
});
