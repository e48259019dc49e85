import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PodRuntime, RuntimePod, RuntimePods } from "../../../actuator/containerd/cri.ts";
import { type ForeignStop, watchedRuntime } from "../../../actuator/pods/admission/foreign-stops.ts";
import { err, ok } from "../../../api/base/result.ts";

/** The lists of a containerd that a real kubelet 1.36.3 also uses: two pods, one of which ignores SIGTERM. */
const RECORDED = (
  JSON.parse(readFileSync(join(import.meta.dirname, "../../data/beside-kubelet/lists.json"), "utf8")) as [
    string,
    RuntimePod,
  ][][]
).map((list): RuntimePods => new Map(list));
const [FIRST = new Map()] = RECORDED;
const LAST = RECORDED.at(-1) ?? new Map();

function watched(owner = "/nodewise") {
  const stops: ForeignStop[] = [];
  let now: RuntimePods | null = FIRST;
  let identity = "1";
  const done = async () => ok(null);
  const runtime = {
    pods: async () => (now === null ? err({ call: "ListContainers", code: "UNAVAILABLE", message: "away" }) : ok(now)),
    runSandbox: async () => ok("new"),
    createContainer: async () => ok("made"),
    ...{ startContainer: done, stopSandbox: done, removeSandbox: done, stopContainer: done, removeContainer: done },
  } as unknown as PodRuntime;
  const watch = watchedRuntime(
    runtime,
    owner,
    (stop) => stops.push(stop),
    () => identity,
  );
  const look = async (...lists: readonly (RuntimePods | null)[]): Promise<readonly string[]> => {
    for (const list of lists) {
      now = list;
      await watch.pods();
    }
    return stops
      .splice(0)
      .map(({ pod, how, containers }) =>
        `${pod.name} ${how} ${containers.map((c) => `${c.name}:${c.exitCode}`).join(" ")}`.trim(),
      )
      .sort();
  };
  return { watch, look, startAnew: () => (identity += "1") };
}

/** The list with one pod changed. */
const withPod = (list: RuntimePods, name: string, change: (pod: RuntimePod) => RuntimePod): RuntimePods =>
  new Map([...list].map(([uid, pod]) => [uid, pod.name === name ? change(pod) : pod] as const));
const idOf = (name: string, what: "sandboxes" | "containers"): string =>
  [...FIRST.values()].find((pod) => pod.name === name)?.[what][0]?.id ?? "";
const exited =
  (exitCode: number, reason = "Error", isReady = true) =>
  (pod: RuntimePod): RuntimePod => ({
    ...pod,
    sandboxes: pod.sandboxes.map((one) => ({ ...one, isReady })),
    containers: pod.containers.map((one) => ({ ...one, state: "exited", exitCode, reason })),
  });

test("pods that a real kubelet stops are reported once, each with how its containers ended", async () => {
  expect(await watched().look(...RECORDED)).toEqual(["deaf-e2e sandbox app:137", "web-e2e sandbox app:0"]);
  // the stop is also reported when the lists between are missed: the exit codes are unknown, since the containers are
  // removed
  expect(await watched().look(FIRST, LAST)).toEqual(["deaf-e2e sandbox app:null", "web-e2e sandbox app:null"]);
  expect(await watched().look(FIRST, new Map())).toEqual(["deaf-e2e sandbox app:null", "web-e2e sandbox app:null"]);
});

test("what the daemon itself stops is not reported, in any order", async () => {
  const { watch, look } = watched();
  await look(FIRST);
  await watch.stopSandbox(idOf("web-e2e", "sandboxes"));
  await watch.stopContainer(idOf("deaf-e2e", "containers"), 0);
  await watch.removeSandbox(idOf("deaf-e2e", "sandboxes"));
  expect(await look(...RECORDED.slice(1))).toEqual([]);
});

test("stops of another daemon's pods, or due to a runtime restart, are not reported", async () => {
  expect(await watched("/other").look(...RECORDED)).toEqual([]);
  expect(await watched().look(LAST, LAST)).toEqual([]);
  expect(await watched().look(FIRST, null, LAST)).toEqual([]);
  const restarted = watched();
  await restarted.look(FIRST);
  restarted.startAnew();
  expect(await restarted.look(LAST, LAST)).toEqual([]);
  const lost = withPod(FIRST, "web-e2e", exited(255, "Unknown", false));
  expect(await watched().look(FIRST, lost)).toEqual([]);
});

test("a container's own end is no foreign stop, an end by signal may be one, a removal is one", async () => {
  const end = (exitCode: number, reason?: string): RuntimePods => withPod(FIRST, "web-e2e", exited(exitCode, reason));
  for (const list of [end(0, "Completed"), end(1), end(139), end(137, "OOMKilled")])
    expect(await watched().look(FIRST, list)).toEqual([]);
  expect(await watched().look(FIRST, end(143), end(143))).toEqual(["web-e2e signal app:143"]);
  expect(await watched().look(FIRST, end(137))).toEqual(["web-e2e signal app:137"]);
  expect(
    await watched().look(
      FIRST,
      withPod(FIRST, "web-e2e", (pod) => ({ ...pod, containers: [] })),
    ),
  ).toEqual(["web-e2e removed app:null"]);
  // the pod's sandbox is stopped within its grace period: then another program stopped the pod, and the stop counts
  // once
  expect(
    await watched().look(FIRST, end(0, "Completed"), withPod(FIRST, "web-e2e", exited(0, "Completed", false))),
  ).toEqual(["web-e2e sandbox app:0"]);
  expect(await watched().look(FIRST, end(143), withPod(FIRST, "web-e2e", exited(143, "Error", false)))).toEqual([
    "web-e2e sandbox",
    "web-e2e signal app:143",
  ]);
});

test("a pod created since the last look is stopped if it is gone, but not in a list requested before", async () => {
  const { watch, look } = watched();
  await look(FIRST);
  const metadata = { name: "web-e2e", namespace: "default", uid: "u", attempt: 1 };
  const made = async (): Promise<void> => {
    await watch.runSandbox({ metadata } as never);
    await watch.createContainer("new", { metadata: { name: "app", attempt: 1 } } as never, { metadata } as never);
    await watch.startContainer("made");
  };
  const slow = watch.pods();
  await made();
  await slow;
  expect(await look()).toEqual([]);
  expect(await look(FIRST)).toEqual(["web-e2e sandbox app:null"]);
});
