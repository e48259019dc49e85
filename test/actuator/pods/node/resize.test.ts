import { describe, expect, test } from "vitest";
import { decideKind } from "../../../../api/decide/kinds/index.ts";
import { decodeSnapshot } from "../../../../api/model/decode.ts";
import { decodeAsk } from "../../../../api/model/decode-ask.ts";
import type { ResizeDecision } from "../../../../api/model/resize.ts";
import type { Json } from "../../../kit/snapshots.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const Mi = 2 ** 20;
const POD = "/kubepods/podu";
const BURSTABLE = "/kubepods/burstable/podu";
const small = appPod("u", { cpu: "1", memory: "256Mi" });
const large = appPod("u", { cpu: "2", memory: "512Mi" }, { metadata: { generation: 2 } });

const ROOM = { cpu: "4", memory: "8Gi", pods: "110" };
/** The writes in the decision about one resize. */
function writesDecided(snapshot: Json, ask: Json) {
  const [decoded, asked] = [decodeSnapshot(snapshot), decodeAsk("resize", ask)];
  if (!decoded.ok || !asked.ok) throw new Error(JSON.stringify([decoded, asked]));
  const answer = decideKind("resize", { snapshot: decoded.value, facts: {}, ask: asked.value, explain: "off" });
  if (!answer.ok) throw new Error(answer.error.message);
  return (answer.value.decision as ResizeDecision).resizes[0]?.actuation?.writes;
}
/** The places, ordered by when each got its final value. */
function byFinalWrite(writes: readonly (readonly [place: string, value: string])[]): readonly string[] {
  const last = new Map(writes);
  const first = writes.filter(([place, value]) => last.get(place) === value);
  return [...new Set(first.map(([place]) => place))];
}

/** A node on which these pods run, without reported events. */
async function running(pods: readonly object[], options: ConstructorParameters<typeof SimulatedPodsNode>[0] = {}) {
  const world = new SimulatedPodsNode(options);
  world.pods = pods;
  await world.run(6);
  world.reportOf();
  world.writes.splice(0);
  return world;
}
const conditionsOf = (world: SimulatedPodsNode, uid = "u") =>
  world
    .status(uid)
    .conditions.filter(({ type }) => type.startsWith("PodResize"))
    .map(({ type, reason, message }) => [type, reason, message].filter((part) => part !== undefined).join(": "));
const summary = (cpu: string, memory: string, more = "") => {
  const list = `{"cpu":"${cpu}","memory":"${memory}"}`;
  return `{"containers":[{"name":"app","resources":{"limits":${list},"requests":${list}}}],"generation":2${more}}`;
};

describe.each([1, 2] as const)("resizing a running pod, cgroup v%i", (version) => {
  const memoryFile = version === 1 ? "memory.limit_in_bytes" : "memory.max";

  test("writes the pod's cgroup before its container's on growth, without a restart", async () => {
    const world = await running([small], { version });
    const id = world.idOf("u");
    world.pods = [large];
    await world.run(5);
    expect(world.writes.filter((line) => line.includes(memoryFile))).toEqual([
      `${POD} ${memoryFile} ${512 * Mi}`,
      `${POD}/${id} ${memoryFile} ${512 * Mi}`,
    ]);
    expect(world.reportOf()).toEqual([
      `ResizeStarted: Pod resize started: ${summary("2", "512Mi")}`,
      `ResizeCompleted: Pod resize completed: ${summary("2", "512Mi")}`,
    ]);
    expect(conditionsOf(world)).toEqual([]);
    expect(world.idOf("u")).toBe(id);
    expect(world.runtime.updates.at(-1)).toMatchObject({ id, resources: { memoryLimitInBytes: 512 * Mi } });
    expect(world.status("u").containerStatuses[0]?.resources).toEqual({
      requests: { cpu: "2", memory: "512Mi" },
      limits: { cpu: "2", memory: "512Mi" },
    });
  });

  test("writes the container's cgroup before the pod's on shrinking", async () => {
    const world = await running([appPod("u", { cpu: "2", memory: "512Mi" })], {
      version,
    });
    const id = world.idOf("u");
    world.pods = [small];
    await world.run(5);
    expect(world.writes.filter((line) => line.includes(memoryFile))).toEqual([
      `${POD}/${id} ${memoryFile} ${256 * Mi}`,
      `${POD} ${memoryFile} ${256 * Mi}`,
    ]);
    expect(world.pod("u").record.resize).toBeNull();
  });

  test.each([
    ["more", small, large],
    ["less", large, small],
    ["more CPU and less memory", small, appPod("u", { cpu: "2", memory: "128Mi" })],
    ["less CPU and more memory", large, appPod("u", { cpu: "1", memory: "1Gi" })],
  ])("writes each limit of the pod and its container in the decided order: %s", async (_, from, to) => {
    const world = await running([from], { version });
    const id = world.idOf("u");
    const { spec, metadata } = to as typeof from & { spec: Json; metadata: Json };
    const node = { capacity: ROOM, allocatable: ROOM, nodeInfo: { kubeletVersion: "v1.36.3" } };
    const pods = [{ ...from, status: world.status("u") }];
    const snapshot = { node: { metadata: { name: "n" }, status: node }, cgroup: { version, driver: "cgroupfs" }, pods };
    const containers = (spec["containers"] as readonly Json[]).map(({ name, resources }) => ({ name, resources }));
    const decided = (writesDecided(snapshot, { pod: "default/u", spec: { containers } }) ?? []).flatMap(
      ({ path, files }) => files.map((file) => [`${path} ${file.path}`, file.value] as const),
    );
    world.pods = [{ ...to, metadata: { ...metadata, generation: 2 } }];
    await world.run(5);
    const written = world.writes.map((line) => {
      const [path, file, ...value] = line.split(" ");
      return [`${path} ${file}`, value.join(" ")] as const;
    });
    // shares limit no cgroup, so the plan for all cgroups sets them from the top in both directions
    const isLimit = (place: string): boolean => /(?:limit_in_bytes|cfs_quota_us|\.max)$/.test(place);
    const known = new Set<string>(decided.map(([place]) => place).filter(isLimit));
    const orders = (writes: typeof written) =>
      Map.groupBy(
        byFinalWrite(writes).filter((place) => known.has(place)),
        (place) => place.split(" ")[1],
      );
    const ofDaemon = [...orders(written)].filter(([, places]) => places.length === 2);
    expect(ofDaemon.length).toBeGreaterThanOrEqual(2);
    const ofDecision = orders(decided);
    for (const [file, places] of ofDaemon) expect([file, ofDecision.get(file)]).toEqual([file, places]);
    expect(world.idOf("u")).toBe(id);
  });

  test("leaves memory that is in use as it was, reports it and tries again", async () => {
    const world = await running([large], { version });
    const id = world.idOf("u");
    world.use(POD, 400 * Mi);
    world.use(`${POD}/${id}`, 400 * Mi);
    const less = appPod("u", { cpu: "1", memory: "256Mi" }, { metadata: { generation: 2 } });
    world.pods = [less];
    await world.run(30);
    const error = `cannot decrease memory limits: [attempting to set pod memory limit (${256 * Mi}) below current usage (${400 * Mi}), attempting to set container "app" memory limit (${256 * Mi}) below current usage (${400 * Mi})]`;
    expect(world.value(POD, memoryFile)).toBe(String(512 * Mi));
    expect(conditionsOf(world)).toEqual([`PodResizeInProgress: Error: ${error}`]);
    expect(world.status("u").containerStatuses[0]).toMatchObject({
      allocatedResources: { cpu: "1", memory: "256Mi" },
      resources: { requests: { cpu: "2", memory: "512Mi" }, limits: { cpu: "2", memory: "512Mi" } },
    });
    const messages = world.reportOf();
    expect(messages).toHaveLength(2);
    expect(messages[1]).toBe(
      `ResizeError: Pod resize error: ${summary("1", "256Mi", `,"error":${JSON.stringify(error)}`)}`,
    );
    world.use(POD, 100 * Mi);
    world.use(`${POD}/${id}`, 100 * Mi);
    await world.run(5);
    expect(world.value(POD, memoryFile)).toBe(String(256 * Mi));
    expect(world.reportOf()).toEqual([`ResizeCompleted: Pod resize completed: ${summary("1", "256Mi")}`]);
  });
});

test("a v1 limit that the kernel refuses at the last moment stays, is reported and tried again", async () => {
  const world = await running([large]);
  const id = world.idOf("u");
  world.pods = [appPod("u", { cpu: "1", memory: "256Mi" }, { metadata: { generation: 2 } })];
  let isGrowing = true;
  world.kernel.beforeChange = () => {
    if (isGrowing) world.use(`${POD}/${id}`, 300 * Mi);
  };
  await world.run(4);
  expect(world.value(`${POD}/${id}`, "memory.limit_in_bytes")).toBe(String(512 * Mi));
  expect(world.value(POD, "memory.limit_in_bytes")).toBe(String(512 * Mi));
  expect(world.reportOf()[1]).toContain("EBUSY");
  expect(conditionsOf(world)[0]).toContain("PodResizeInProgress: Error: ");
  isGrowing = false;
  world.use(`${POD}/${id}`, 100 * Mi);
  await world.run(15);
  expect(world.value(POD, "memory.limit_in_bytes")).toBe(String(256 * Mi));
  expect(conditionsOf(world)).toEqual([]);
});

test("a resize is repeated when the runtime refuses the update", async () => {
  const world = await running([small]);
  let fails = true;
  world.runtime.on = ({ call }) =>
    call === "UpdateContainerResources" && fails
      ? { effect: false, answer: { call, code: "UNKNOWN", message: "not now" } }
      : undefined;
  world.pods = [large];
  await world.run(4);
  expect(conditionsOf(world)).toEqual(["PodResizeInProgress: Error: UpdateContainerResources: not now"]);
  expect(world.runtime.updates).toEqual([]);
  world.restart();
  fails = false;
  await world.run(12);
  expect(world.runtime.updates).toMatchObject([{ id: world.idOf("u"), resources: { memoryLimitInBytes: 512 * Mi } }]);
  expect(conditionsOf(world)).toEqual([]);
});

describe("a resize that is not admitted", () => {
  const two = (uid: string, cpu: string, generation = 1) =>
    appPod(uid, { cpu, memory: "64Mi" }, { metadata: { generation }, limits: { cpu: "7", memory: "64Mi" } });

  test("is deferred in the kubelet's words, counts as before, and is retried when there is room", async () => {
    const world = await running([two("u", "3"), two("v", "3")]);
    world.pods = [two("u", "5", 2), two("v", "3")];
    await world.run(3);
    const message = "Node didn't have enough resource: cpu, requested: 5000, used: 3000, capacity: 7000";
    expect(conditionsOf(world)).toEqual([`PodResizePending: Deferred: ${message}`]);
    expect(world.reportOf()).toEqual([
      expect.stringMatching(/^ResizeDeferred: Pod resize OutOfcpu: .*"error":"Node didn't/),
    ]);
    expect(world.value(BURSTABLE, "cpu.shares")).toBe("3072");
    expect(world.status("u").containerStatuses[0]?.allocatedResources).toEqual({ cpu: "3", memory: "64Mi" });
    world.pods = [two("u", "5", 2)];
    await world.run(8);
    expect(world.value(BURSTABLE, "cpu.shares")).toBe("5120");
    expect(world.reportOf().map((line) => line.slice(0, 15))).toEqual(["ResizeStarted: ", "ResizeCompleted"]);
  });

  test("is dropped when it is no longer requested", async () => {
    const world = await running([two("u", "3"), two("v", "3")]);
    world.pods = [two("u", "5"), two("v", "3")];
    await world.run(2);
    world.pods = [two("u", "3"), two("v", "3")];
    await world.run(1);
    expect(world.pod("u").record.resize).toBeNull();
  });

  test("is carried out when another pod's resize makes room", async () => {
    const world = await running([two("u", "3"), two("v", "3")]);
    world.pods = [two("u", "5"), two("v", "3")];
    await world.run(3);
    world.pods = [two("u", "5"), two("v", "2")];
    await world.run(10);
    expect(world.value(BURSTABLE, "cpu.shares")).toBe("5120");
    expect(conditionsOf(world)).toEqual([]);
  });

  test.each<[string, object, object, object, string]>([
    [
      "more than the node has",
      two("u", "3"),
      appPod("u", { cpu: "7500m", memory: "64Mi" }, { limits: { cpu: "8", memory: "64Mi" } }),
      {},
      "node didn't have enough allocatable resources: cpu, requested: 7500, allocatable: 7000",
    ],
    ["another QoS class", small, two("u", "1"), {}, "Pod QOS Class may not change as a result of resizing"],
    [
      "a limit less",
      appPod("u", { cpu: "1", memory: "1Gi" }, { limits: { cpu: "2", memory: "1Gi" } }),
      appPod("u", { cpu: "1", memory: "1Gi" }, { limits: { memory: "1Gi" } }),
      {},
      "resource limits cannot be removed",
    ],
    [
      "CPUs of a static policy",
      small,
      appPod("u", { cpu: "2", memory: "256Mi" }),
      { cpuManagerPolicy: "static" },
      'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
    ],
  ])("with %s is infeasible, and not decided again", async (_name, now, then, configuration, message) => {
    const world = await running([now], { configuration });
    world.pods = [then];
    world.decisions.splice(0);
    await world.run(3);
    expect(conditionsOf(world)).toEqual([`PodResizePending: Infeasible: ${message}`]);
    expect(world.reportOf()).toEqual([expect.stringMatching(/^ResizeInfeasible: Pod resize Infeasible: /)]);
    expect(world.decisions.filter(({ kind }) => kind === "admission")).toEqual([]);
  });

  test("a Guaranteed pod with exclusive CPUs keeps them when its memory is resized", async () => {
    const options = { configuration: { cpuManagerPolicy: "static" } };
    const world = await running([small, appPod("v", { cpu: "1", memory: "64Mi" })], options);
    const cpusOf = () => world.value(`${POD}/${world.idOf("u")}`, "cpuset.cpus");
    const before = cpusOf();
    expect(before).toMatch(/^\d$/);
    world.pods = [appPod("u", { cpu: "1", memory: "512Mi" }), appPod("v", { cpu: "1", memory: "64Mi" })];
    await world.run(5);
    expect(world.value(POD, "memory.limit_in_bytes")).toBe(String(512 * Mi));
    expect(cpusOf()).toBe(before);
  });
});

describe("resizePolicy RestartContainer", () => {
  const restarts = (memory: string, spec: object = {}) =>
    appPod(
      "u",
      { cpu: "1", memory },
      { container: { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] }, spec },
    );

  test.each(["Always", "OnFailure"])(
    "stops the container, changes its cgroups and starts it with restart policy %s",
    async (restartPolicy) => {
      const world = await running([restarts("512Mi", { restartPolicy })]);
      const before = world.idOf("u");
      world.use(`${POD}/${before}`, 400 * Mi);
      world.pods = [restarts("256Mi", { restartPolicy })];
      await world.run(8);
      const after = world.idOf("u");
      expect([before, "none"]).not.toContain(after);
      expect(world.writes.filter((line) => line.startsWith(`${POD}/${before} memory`))).toEqual([]);
      expect(world.value(`${POD}/${after}`, "memory.limit_in_bytes")).toBe(String(256 * Mi));
      expect(world.reportOf(/Killing|Resize|BackOff/).map((line) => line.split(": ")[0])).toEqual([
        "ResizeStarted",
        "Killing",
        "ResizeCompleted",
      ]);
      expect(world.status("u")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 1 }] });
    },
  );

  test("resizes CPU alone in place", async () => {
    const world = await running([restarts("512Mi")]);
    const before = world.idOf("u");
    const pod = restarts("512Mi") as { spec: { containers: { resources: object }[] } };
    const amounts = { cpu: "2", memory: "512Mi" };
    for (const one of pod.spec.containers) one.resources = { requests: amounts, limits: amounts };
    world.pods = [pod];
    await world.run(5);
    expect(world.idOf("u")).toBe(before);
    expect(world.value(POD, "cpu.shares")).toBe("2048");
  });

  test("starts the container after the daemon was killed in between, whatever its exit code", async () => {
    const world = await running([restarts("512Mi", { restartPolicy: "OnFailure" })]);
    const before = world.idOf("u");
    world.pods = [restarts("256Mi", { restartPolicy: "OnFailure" })];
    await world.run(1);
    expect(world.pod("u").record.resize?.actuation?.restarts).toEqual({ app: before });
    world.runtime.exit(before, 0);
    world.restart();
    await world.run(8);
    expect(["none", before]).not.toContain(world.idOf("u"));
    expect(world.pod("u").record).toMatchObject({ state: "active", resize: null });
    expect(world.status("u").phase).toBe("Running");
  });
});

test("changed labels and images take effect at once, while the resize is still pending", async () => {
  const world = await running([appPod("u", { cpu: "3" }), appPod("v", { cpu: "3" })]);
  world.runtime.images.set("busybox:2", { id: "sha256:2" });
  world.pods = [
    appPod("u", { cpu: "5" }, { container: { image: "busybox:2" }, metadata: { labels: { a: "b" } } }),
    appPod("v", { cpu: "3" }),
  ];
  const before = world.idOf("u");
  await world.run(4);
  expect(world.pod("u").record).toMatchObject({
    resize: { reason: "Deferred" },
    pod: { metadata: { labels: { a: "b" } }, spec: { containers: [{ resources: { requests: { cpu: "3" } } }] } },
  });
  expect(["none", before]).not.toContain(world.idOf("u"));
});

test("changed labels alone take effect without a decision or restart", async () => {
  const world = await running([small]);
  const before = world.idOf("u");
  world.decisions.splice(0);
  world.pods = [appPod("u", { cpu: "1000m", memory: "256Mi" }, { metadata: { labels: { a: "b" } } })];
  await world.run(3);
  expect(world.pod("u").pod.labels).toEqual({ a: "b" });
  expect(world.decisions.filter(({ kind }) => kind === "admission")).toEqual([]);
  expect([world.idOf("u"), world.reportOf()]).toEqual([before, []]);
});

test("a resize requested during another resize is reported beside it", async () => {
  const world = await running([large]);
  world.use(POD, 400 * Mi);
  world.use(`${POD}/${world.idOf("u")}`, 400 * Mi);
  world.pods = [appPod("u", { cpu: "1", memory: "256Mi" }, { metadata: { generation: 2 } })];
  await world.run(3);
  world.pods = [appPod("u", { cpu: "9", memory: "256Mi" }, { metadata: { generation: 3 } })];
  await world.run(3);
  expect(conditionsOf(world)).toEqual([
    "PodResizePending: Infeasible: node didn't have enough allocatable resources: cpu, requested: 9000, allocatable: 7000",
    expect.stringMatching(/^PodResizeInProgress: Error: cannot decrease memory limits/),
  ]);
  world.pods = [large];
  await world.run(5);
  expect([world.value(POD, "memory.limit_in_bytes"), world.pod("u").record.resize]).toEqual([String(512 * Mi), null]);
});

test("a critical pod's resize preempts other pods first", async () => {
  const critical = (cpu: string) => appPod("u", { cpu }, { spec: { priority: 2_000_000_000 } });
  const world = await running([critical("3"), appPod("v", { cpu: "3" })]);
  world.pods = [critical("5"), appPod("v", { cpu: "3" })];
  await world.run(8);
  expect(world.reportOf(/^Resize|Preempting/)).toEqual([
    "Preempting: Preempted in order to admit critical pod",
    expect.stringMatching(/^ResizeDeferred: .*waits until default\/v ended/),
    expect.stringMatching(/^ResizeStarted/),
    expect.stringMatching(/^ResizeCompleted/),
  ]);
  expect(world.pod("v").record.end?.cause).toBe("preempted");
  expect(conditionsOf(world)).toEqual([]);
  expect(world.value(BURSTABLE, "cpu.shares")).toBe("5120");
});
