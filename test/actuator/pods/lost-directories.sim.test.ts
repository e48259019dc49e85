import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Problem } from "../../../actuator/core/interfaces.ts";
import { OrphanedDirectories } from "../../../actuator/pods/volumes/orphaned-directories.ts";
import { markIn } from "../../../actuator/pods/volumes/pod-mark.ts";
import { makePodDirectory } from "../../../actuator/pods/volumes/volumes.ts";
import type { Result } from "../../../api/base/result.ts";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { ME, workerWorld } from "./worker-kit.ts";

const must = (result: Result<unknown, string>): void => {
  if (!result.ok) throw new Error(result.error);
};

describe("pod directories without a record", () => {
  /** A daemon that has just started, and these pod directories, which an earlier run of the same daemon created. */
  function lost(...uids: readonly string[]) {
    const { roots, worker, mounter, time } = workerWorld();
    const at = (uid: string): string => join(roots.podsDirectory, uid);
    const make = (uid: string, owner = ME): void => {
      must(makePodDirectory({ podDirectory: at(uid), logDirectory: "" }, owner));
      mkdirSync(join(at(uid), VOLUME), { recursive: true });
      writeFileSync(join(at(uid), "etc-hosts"), "");
    };
    for (const uid of uids) make(uid);
    const messages: string[] = [];
    let work: Promise<unknown> = Promise.resolve();
    const clear = worker.clear.bind(worker);
    worker.clear = (known, recorded) => {
      const cleared = clear(known, recorded);
      work = cleared;
      return cleared;
    };
    const onProblem = ({ message }: Problem): void => void messages.push(message);
    const directories = new OrphanedDirectories({ worker, onProblem, clock: time });
    const mapOf = (uids: readonly string[] | null) => uids && new Map(uids.map((uid) => [uid, {}] as const));
    const ask = (seen: readonly string[] | null, records: readonly string[], held: readonly string[] | null) =>
      directories.sweep({ runtimePods: mapOf(seen), held: mapOf(held), records: new Map(mapOf(records)) });
    /** Runs one look, and returns the directories that remain. */
    const look = async (seen: readonly string[] | null, records: readonly string[] = [], held = seen) => {
      ask(seen, records, held);
      await work;
      return readdirSync(roots.podsDirectory).sort();
    };
    const standing = (records: readonly string[] = []) => ask([], records, []).map(({ message }) => message);
    return { at, make, look, messages, standing, mounter, time, logs: roots.podLogsDirectory };
  }
  const VOLUME = "volumes/kubernetes.io~empty-dir/data";
  const stays = (path: string, why: string): string => `${path} of an unknown pod stays: ${why}`;
  const FULL = "it holds data, and nothing is recorded of its pod: remove it by hand if it may go";
  const removed = (path: string): string => `removed ${path}, left by an unknown pod`;
  const alien = (...paths: readonly string[]): string =>
    `${paths.join(", ")} in podsDirectory: not made by this daemon, so never touched: podsDirectory is to be one of its own`;

  test("are removed and logged, except those of pods that run", async () => {
    const { at, look, messages, standing } = lost("gone", "recorded", "running");
    expect(await look(["running"], ["recorded"])).toEqual(["recorded", "running"]);
    expect([messages, standing(["recorded", "running"])]).toEqual([[removed(at("gone"))], []]);
  });
  test("are removed with their pod logs, and other pods' logs stay", async () => {
    const { look, logs, at } = lost("gone", "full", "running");
    writeFileSync(join(at("full"), VOLUME, "precious"), "");
    const names = [
      "shop_web_gone",
      "shop_web_full",
      "shop_web_running",
      "shop_web_strange",
      "shop_web_not_gone",
      "gone",
    ];
    for (const name of names) mkdirSync(join(logs, name, "app"), { recursive: true });
    await look(["running"]);
    expect(readdirSync(logs).sort()).toEqual(names.filter((name) => name !== "shop_web_gone").sort());
  });
  test("stay until the runtime has answered once, and are removed then", async () => {
    const { look } = lost("gone", "running");
    expect(await look(null)).toEqual(["gone", "running"]);
    expect(await look(["running"])).toEqual(["running"]);
  });
  test("stay while the runtime holds a foreign sandbox of the pod", async () => {
    const { look } = lost("theirs");
    expect(await look([], [], ["theirs"])).toEqual(["theirs"]);
  });
  test("are removed once only: later ones may be somebody else's", async () => {
    const { look, make } = lost("gone");
    expect(await look([])).toEqual([]);
    make("later");
    expect(await look([])).toEqual(["later"]);
  });
  test("are removed once a pod that ran without a record is gone", async () => {
    const { look } = lost("recorded", "running");
    expect(await look(["running"], ["recorded"])).toEqual(["recorded", "running"]);
    expect(await look([], ["recorded"])).toEqual(["recorded"]);
  });
  test("stay whole while a volume holds data, and are reported as long as they do", async () => {
    const { at, look, messages, standing, time } = lost("a", "b", "c");
    writeFileSync(join(at("b"), VOLUME, "file"), "data");
    expect(await look([])).toEqual(["b"]);
    expect(readdirSync(at("b")).sort()).toEqual([".nodewise-pod.json", "containers", "etc-hosts", "volumes"]);
    expect(standing()).toEqual([stays(join(at("b"), VOLUME), FULL)]);
    expect(messages).toEqual([removed(at("a")), removed(at("c"))]);
    rmSync(join(at("b"), VOLUME, "file"));
    await time.pass(60_000);
    expect(await look([])).toEqual([]);
    expect(standing()).toEqual([]);
  });
  test("are reported where they cannot be removed, and do not keep others from being removed", async () => {
    const { at, look, standing, mounter } = lost("a", "b", "c");
    const point = join(at("b"), "containers");
    mounter.points.push({ point, type: "ext4" });
    expect(await look([])).toEqual(["b"]);
    expect(standing()).toEqual([stays(point, "something is mounted there")]);
    expect(existsSync(join(at("b"), ".nodewise-pod.json")), "it is still known for the daemon's own").toBe(true);
  });

  test("that this daemon did not create are never touched, but reported", async () => {
    const { at, look, make, messages, standing } = lost("gone");
    mkdirSync(at("photos/2020"), { recursive: true });
    mkdirSync(at("db/volumes/table"), { recursive: true });
    mkdirSync(at("empty"));
    writeFileSync(at("file"), "");
    symlinkSync("/", at("link"));
    make("theirs", "another");
    mkdirSync(at("lost+found"));
    // a directory's mark does not count in a copied or renamed directory
    make("copied");
    renameSync(at("copied"), at("moved"));
    const all = ["db", "empty", "file", "link", "lost+found", "moved", "photos", "theirs"];
    expect(await look([])).toEqual(all);
    expect([existsSync(at("photos/2020")), existsSync(at("db/volumes/table"))]).toEqual([true, true]);
    expect(messages).toEqual([removed(at("gone"))]);
    expect(standing()).toEqual([alien(at("db"), at("empty"), `${at("file")} and 4 more`)]);
  });

  test("created by a version without marks get a mark while there is a record", async () => {
    const { at, look, standing } = lost("old", "photos");
    for (const uid of ["old", "photos"]) rmSync(join(at(uid), ".nodewise-pod.json"));
    writeFileSync(join(at("photos"), "a.jpg"), "");
    expect(await look([], ["old", "photos"])).toEqual(["old", "photos"]);
    expect([existsSync(join(at("old"), ".nodewise-pod.json")), markIn(at("photos"))]).toEqual([true, null]);
    expect(standing(["old", "photos"])).toEqual([]);
  });

  test("left unfinished by a crash are removed", async () => {
    const { at, look, messages } = lost();
    const unfinished = ".nodewise-new-00000000-0000-4000-8000-000000000000";
    mkdirSync(at(unfinished));
    writeFileSync(join(at(unfinished), ".nodewise-pod.json.new"), "{");
    expect(await look([])).toEqual([]);
    expect(messages).toEqual([removed(at(unfinished))]);
  });
  test("that look unfinished but hold something else stay", async () => {
    const { at, look } = lost();
    const unfinished = ".nodewise-new-00000000-0000-4000-8000-000000000000";
    mkdirSync(join(at(unfinished), "x"), { recursive: true });
    expect(await look([])).toEqual([unfinished]);
  });
});

describe("a foreign directory in the place of a pod's directory", () => {
  const web = runnable({ containers: [runnableContainer("a")] });
  test("keeps the pod from starting, and is not removed with it", async () => {
    const world = workerWorld();
    const at = join(world.roots.podsDirectory, "uid-1");
    mkdirSync(at);
    writeFileSync(join(at, "a.jpg"), "");
    const why = `${at}: it holds what no pod's directory does, and this daemon did not make it`;
    expect((await world.up(web)).error).toBe(`error making pod data directories: ${why}`);
    expect((await world.forget(web)).isGone).toBe(false);
    expect(readdirSync(at)).toEqual(["a.jpg"]);
  });
});

describe("what the runtime holds of a pod without a record", () => {
  const web = runnable({
    containers: [runnableContainer("a")],
    volumes: [{ name: "data", emptyDir: { medium: "", sizeLimitBytes: null } }],
  });
  test.each([true, false])(
    "is removed; the pod's directory too only if its volumes are empty (%s)",
    async (isEmpty) => {
      const world = workerWorld();
      await world.up(web);
      const at = join(world.roots.podsDirectory, "uid-1");
      const file = join(at, "volumes/kubernetes.io~empty-dir/data/file");
      if (!isEmpty) writeFileSync(file, "data");
      await world.end(null);
      const seen = await world.seenOf();
      if (seen === null) throw new Error("it is not there");
      const left = await world.time.drive(world.worker.forgetOrphan(seen, new AbortController().signal));
      expect([left.isGone, existsSync(at), existsSync(file)]).toEqual([isEmpty, !isEmpty, !isEmpty]);
      expect([world.runtime.sandboxes.size, world.runtime.containers.size]).toEqual([0, 0]);
    },
  );
});

describe("a pod whose directories were removed from outside", () => {
  const web = runnable({
    containers: [runnableContainer("a"), runnableContainer("b")],
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
  test("gets new directories for its next container, and its running containers are left alone", async () => {
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
  test("ends and is forgotten like any other pod", async () => {
    const { runtime, end, forget } = await withoutDirectories();
    expect(await end(web)).toEqual({ isEnded: true, error: null });
    expect(await forget(web)).toEqual({ isGone: true, leftOvers: [] });
    expect([runtime.sandboxes.size, runtime.containers.size]).toEqual([0, 0]);
  });
  test("gets the directories above it back, too", async () => {
    const { roots, sync, podAt } = await withoutDirectories();
    for (const root of Object.values(roots)) rmSync(root, { recursive: true });
    const turn = await sync(web, { toStart: [{ name: "a", attempt: 1 }] });
    expect([turn.error, turn.faults]).toEqual([null, {}]);
    expect(existsSync(podAt)).toBe(true);
  });
});
