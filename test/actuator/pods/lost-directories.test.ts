import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LostDirectories } from "../../../actuator/pods/lost-directories.ts";
import type { Problem } from "../../../actuator/ports.ts";
import { container, pod } from "./pod-kit.ts";
import { workerWorld } from "./worker-kit.ts";

describe("directories of pods that nobody knows", () => {
  /** A daemon that has just started over these directories. */
  function lost(...uids: readonly string[]) {
    const { roots, worker, mounter } = workerWorld();
    const at = (uid: string): string => join(roots.podsDirectory, uid);
    const make = (uid: string): void => {
      mkdirSync(join(at(uid), "volumes/kubernetes.io~empty-dir/data"), { recursive: true });
      writeFileSync(join(at(uid), "volumes/kubernetes.io~empty-dir/data/file"), "");
    };
    for (const uid of uids) make(uid);
    const told: string[] = [];
    let work: Promise<unknown> = Promise.resolve();
    const clear = worker.clear.bind(worker);
    worker.clear = (known) => {
      const cleared = clear(known);
      work = cleared;
      return cleared;
    };
    const onProblem = ({ from, message }: Problem): void => void told.push(`${from}: ${message}`);
    const directories = new LostDirectories({ worker, onProblem });
    const look = async (...known: readonly (readonly string[] | null)[]) => {
      directories.look(known.map((uids) => uids && new Map(uids.map((uid) => [uid, {}] as const))));
      await work;
      return readdirSync(roots.podsDirectory).sort();
    };
    return { at, make, look, told, mounter };
  }

  test("go; those of pods with a record, and of pods that run without one, stay", async () => {
    const { look, told } = lost("gone", "recorded", "running");
    expect(await look(["running"], ["recorded"])).toEqual(["recorded", "running"]);
    expect(told).toEqual([]);
  });
  test("stay until the runtime has been heard, and are looked for then", async () => {
    const { look } = lost("gone", "running");
    expect(await look(null, [])).toEqual(["gone", "running"]);
    expect(await look(["running"], [])).toEqual(["running"]);
  });
  test("are looked for once: what comes later is another's business", async () => {
    const { look, make } = lost("gone");
    expect(await look([], [])).toEqual([]);
    make("later");
    expect(await look([], [])).toEqual(["later"]);
  });
  test("are looked for again when what ran without a record is gone", async () => {
    const { look } = lost("recorded", "running");
    expect(await look(["running"], ["recorded"])).toEqual(["recorded", "running"]);
    expect(await look([], ["recorded"])).toEqual(["recorded"]);
  });
  test("are told where they cannot be removed, and the others go all the same", async () => {
    const { at, look, told, mounter } = lost("a", "b", "c");
    const point = join(at("b"), "volumes/kubernetes.io~empty-dir/data/file");
    mounter.points.push({ point, type: "ext4" });
    expect(await look([], [])).toEqual(["b"]);
    expect(told).toEqual([`pods: ${point} of a pod that nobody knows stays: something is mounted there`]);
  });
});

describe("a pod whose directories somebody has removed", () => {
  const web = pod({
    containers: [container("a"), container("b")],
    volumes: [{ name: "data", emptyDir: { medium: "", sizeLimitBytes: null } }],
  });
  async function withoutDirectories() {
    const world = workerWorld();
    await world.up(web);
    const { podsDirectory, podLogsDirectory } = world.roots;
    const [podAt, logsAt] = [join(podsDirectory, "uid-1"), join(podLogsDirectory, "default_web_uid-1")];
    for (const directory of [podAt, logsAt]) rmSync(directory, { recursive: true });
    world.calls();
    return { ...world, podAt, logsAt };
  }
  test("has its next container started in new ones, and its others left alone", async () => {
    const { runtime, sync, calls, podAt, logsAt } = await withoutDirectories();
    runtime.exit("container-2", 1);
    const turn = await sync(web, { toRemove: ["container-2"], toStart: [{ name: "a", attempt: 1 }] });
    expect([turn.started, turn.error, turn.faults]).toEqual([["a"], null, {}]);
    expect(calls()).toEqual([
      "RemoveContainer container-2",
      "CreateContainer a_web_default_uid-1_1",
      "StartContainer container-4",
    ]);
    const made = ["volumes/kubernetes.io~empty-dir/data", "etc-hosts"].map((name) => existsSync(join(podAt, name)));
    expect([made, existsSync(join(logsAt, "a"))]).toEqual([[true, true], true]);
    expect([runtime.running("b").length, runtime.wrongs]).toEqual([1, []]);
  });
  test("ends and is forgotten like any other", async () => {
    const { runtime, end, forget } = await withoutDirectories();
    expect(await end(web)).toEqual({ isEnded: true, error: null });
    expect(await forget(web)).toEqual({ isGone: true, leftOvers: [] });
    expect([runtime.sandboxes.size, runtime.containers.size]).toEqual([0, 0]);
  });
  test("whose parent is gone too has that made again", async () => {
    const { roots, sync, podAt } = await withoutDirectories();
    for (const root of Object.values(roots)) rmSync(root, { recursive: true });
    const turn = await sync(web, { toStart: [{ name: "a", attempt: 1 }] });
    expect([turn.error, turn.faults]).toEqual([null, {}]);
    expect(existsSync(podAt)).toBe(true);
  });
});
