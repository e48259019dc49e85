import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { appPod, type PodParts, SimulatedPodsNode } from "./simulated-node.ts";

const VOLUMES = { volumes: [{ name: "data", emptyDir: {} }], restartPolicy: "Never" };
const MOUNTED = { volumeMounts: [{ name: "data", mountPath: "/data" }], terminationMessagePath: "/dev/end" };
const job = ({ spec, ...more }: PodParts = {}): object =>
  appPod("job", {}, { container: MOUNTED, spec: { ...VOLUMES, ...spec }, ...more });

/** A node with one pod that has written into its volume; `runs`: seconds until each container exits, by name. */
async function withJob(pod: object, runs: Readonly<Record<string, number>>, exitCode = 0) {
  const world = new SimulatedPodsNode();
  world.pods = [pod];
  world.runtime.programOf = ({ metadata }) => {
    const seconds = runs[metadata.name];
    return { runsMs: seconds === undefined ? null : seconds * 1000, exitCode, stopsMs: 0 };
  };
  await world.run(4);
  const directory = join(world.dir, "pods/job");
  const data = join(directory, "volumes/kubernetes.io~empty-dir/data");
  writeFileSync(join(data, "file"), "data");
  const state = () => world.pod("job").record.state;
  const logs = () => readdirSync(join(world.dir, "logs"));
  return { world, directory, data, state, logs };
}

describe("the volumes of a pod that is not deleted are removed when", () => {
  const deadline = job({ spec: { activeDeadlineSeconds: 8 } });
  test.each<[string, object, Readonly<Record<string, number>>, number, object]>([
    ["it succeeds", job(), { app: 8 }, 0, { phase: "Succeeded" }],
    ["it fails", job(), { app: 8 }, 1, { phase: "Failed" }],
    ["it runs longer than it may", deadline, {}, 0, { phase: "Failed", reason: "DeadlineExceeded" }],
  ])("%s", async (_, pod, runs, exitCode, status) => {
    const { world, directory, data, state, logs } = await withJob(pod, runs, exitCode);
    expect([state(), existsSync(join(data, "file"))]).toEqual(["active", true]);
    await world.run(12);
    expect(state()).toBe("terminated");
    expect(existsSync(join(directory, "volumes"))).toBe(false);
    // the containers that show how the pod ended stay
    expect(world.pod("job").runtimePod?.containers.map((c) => [c.name, c.state, c.exitCode])).toEqual([
      ["app", "exited", exitCode],
    ]);
    expect([readdirSync(join(directory, "containers")), logs()]).toEqual([["app"], ["default_job_job"]]);
    expect(world.status("job")).toMatchObject(status);
    expect(world.problems).toEqual([]);
  });
});

test("a pod's volumes stay while one of its containers still runs", async () => {
  const { world, data, state } = await withJob(
    job({ spec: { containers: ["app", "other"].map((name) => ({ name, image: "busybox:1", ...MOUNTED })) } }),
    { app: 8 },
  );
  await world.run(12);
  expect([state(), existsSync(join(data, "file"))]).toEqual(["active", true]);
});

test("a pod's volumes are removed although its end cannot be written, also after a crash right then", async () => {
  const { world, directory, state } = await withJob(job(), { app: 8 });
  const file = join(world.dir, "state/pods/job.pod.json");
  mkdirSync(`${file}.new`);
  await world.run(12);
  expect([state(), existsSync(join(directory, "volumes"))]).toEqual(["terminated", false]);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ record: { state: "lives" } });
  rmdirSync(`${file}.new`);
  world.restart();
  await world.run(3);
  expect([state(), existsSync(join(directory, "volumes"))]).toEqual(["terminated", false]);
  expect(world.status("job")).toMatchObject({ phase: "Succeeded" });
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ record: { state: "ended" } });
});

test("a daemon started after a crash removes leftover volumes, and all else once the pod is deleted", async () => {
  const { world, directory, data, state, logs } = await withJob(job(), { app: 8 });
  await world.run(12);
  mkdirSync(data, { recursive: true });
  await world.run(2);
  // the volume was already removed once, and is not checked again each second
  expect(existsSync(data)).toBe(true);
  world.restart();
  await world.run(3);
  expect([state(), existsSync(data), existsSync(directory)]).toEqual(["terminated", false, true]);
  world.pods = [];
  await world.run(4);
  expect([existsSync(directory), logs(), world.manager.set.get("job")]).toEqual([false, [], null]);
});

test("a pod's volumes stay while the runtime reports a running container of a pod recorded as ended", async () => {
  const { world, data, state } = await withJob(job(), { app: 8 });
  await world.run(12);
  const [container] = world.runtime.containers.values();
  if (container === undefined) throw new Error("no container");
  container.state = "running";
  mkdirSync(data, { recursive: true });
  world.restart();
  await world.run(3);
  expect([state(), existsSync(data)]).toEqual(["terminated", true]);
  container.state = "exited";
  await world.run(3);
  expect(existsSync(data)).toBe(false);
});
