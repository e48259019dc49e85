import { describe, expect, test } from "vitest";
import { OWNER } from "../../../actuator/containerd/cri.ts";
import { foreignSandboxes } from "../../../actuator/lifecycle/foreign-sandbox.ts";
import type { PodSpec, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import {
  type PodsToRun,
  type StopEnd,
  type TakeoverDeps,
  takeOver,
  takeoverPlan,
} from "../../../actuator/takeover/take-over.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { must } from "../../e2e/containerd/pods.ts";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { SimClock } from "../../sim/clock.ts";
import { FakePodRuntime } from "../../sim/fake-pod-runtime.ts";
import { PodTime } from "../../sim/pod-time.ts";

const ME = "/nodewise";
const MANIFEST = { "kubernetes.io/config.source": "file" };

/** A runtime in which other programs run pods, and the pods that Nodewise should run. */
function world(wanted: readonly RunnablePod[], refused: PodsToRun["refused"] = []) {
  const time = new PodTime(new SimClock(1_800_000_000_000));
  const runtime = new FakePodRuntime(time);
  runtime.images.set("busybox", { id: "sha256:1" });
  const desired: PodsToRun = { pods: new Map(wanted.map((one) => [one.uid, one])), refused };
  /** Runs a pod, and returns its sandbox. */
  const run = async (name: string, containers: readonly string[] = ["app"], labels: Record<string, string> = {}) => {
    const metadata = { name, namespace: "default", uid: `foreign-${name}`, attempt: runtime.sandboxes.size };
    const config = { metadata, labels, annotations: MANIFEST };
    const id = await time.drive(must(runtime.runSandbox(config)));
    for (const one of containers) {
      const made = { metadata: { name: one, attempt: metadata.attempt }, image: { image: "busybox" }, labels };
      const started = await time.drive(must(runtime.createContainer(id, made, config)));
      await time.drive(must(runtime.startContainer(started)));
    }
    return id;
  };
  const plan = async (asked: readonly string[] | null = null) =>
    takeoverPlan(foreignSandboxes(await must(runtime.pods()), ME), desired, asked === null ? null : new Set(asked));
  const stopAll = async (more: Partial<TakeoverDeps> = {}, signal = new AbortController().signal) => {
    const deps: TakeoverDeps = {
      runtime,
      clock: time,
      profile: v1_36,
      owner: ME,
      hostIPs: ["192.168.0.1"],
      podsToRun: async () => desired,
      onEvent: () => {},
      onEnd: () => {},
      ...more,
    };
    const { stops } = await plan();
    runtime.calls.splice(0);
    const done = await time.drive(takeOver(deps, stops, signal));
    return {
      ...done,
      ends: done.ends.map(({ stop, outcome, message }) => `${stop.pod.name} ${outcome} ${message}`.trim()),
    };
  };
  /** The calls that change something. */
  const calls = () => runtime.calls.filter((call) => !call.startsWith("List"));
  const ready = () => [...runtime.sandboxes.values()].filter(({ isReady }) => isReady).map(({ id }) => id);
  return { time, runtime, run, plan, stopAll, calls, ready };
}
const named = (name: string, spec: Partial<PodSpec> = {}): RunnablePod => runnable(spec, { name, uid: `own-${name}` });

describe("taking over a kubelet's pods", () => {
  test("plans the pods that manifests name, by priority, sidecars last, and says why others stay", async () => {
    const sidecar = runnableContainer("proxy", { isSidecar: true });
    const db = named("db", { priority: 2000, initContainers: [sidecar], terminationGracePeriodSeconds: 60 });
    const old = runnable({ nodeName: "n1" }, { name: "old-n1", uid: "own-old" });
    const fault = { path: "spec.volumes[0]", message: "is not done here" };
    const { run, plan } = world([db, named("web"), named("api"), old], [{ pod: "default/odd", faults: [fault] }]);
    for (const name of ["other", "db", "web", "api", "odd", "old-n0"])
      await run(name, name === "db" ? ["proxy", "app"] : ["app"]);
    await run("theirs", ["app"], { [OWNER]: "/nodewise-2" });
    await run("web-own", ["app"], { [OWNER]: ME });
    const { stops, stays } = await plan();
    expect(stops.map((stop) => [stop.pod.name, stop.graceSeconds, stop.containers.map(({ name }) => name)])).toEqual([
      ["api", 30, ["app"]],
      ["web", 30, ["app"]],
      ["db", 60, ["app", "proxy"]],
    ]);
    expect(Object.fromEntries(stays.map(({ sandbox, why }) => [sandbox.name, why]))).toEqual({
      other: "no manifest names it",
      odd: "its manifest cannot be run here: spec.volumes[0]: is not done here",
      "old-n0": "seems to be default/old-n1 of a kubelet that calls this node `n0`: give Nodewise that nodeName",
      theirs: "the Nodewise daemon of cgroup root /nodewise-2 runs it: let that one end it",
    });
    const one = await plan(["default/web"]);
    expect(one.stops.map((stop) => stop.pod.name)).toEqual(["web"]);
    expect(one.stays.filter(({ why }) => why === "not asked for").map(({ sandbox }) => sandbox.name)).toEqual([
      "db",
      "api",
    ]);
  });

  test("stops exactly these with preStop hook and grace period, and nothing the second time", async () => {
    const hooked = runnableContainer("app", { preStop: { exec: ["flush"] } });
    const { run, stopAll, calls, ready, runtime } = world([named("web", { containers: [hooked] }), named("db")]);
    const kept = [await run("other"), await run("theirs", ["app"], { [OWNER]: "/nodewise-2" })];
    const [web, db] = [await run("web"), await run("db")];
    const { ends, cameBack } = await stopAll();
    expect([ends, cameBack]).toEqual([["db stopped", "web stopped"], null]);
    expect(ready()).toEqual(kept);
    const ids = [web, db].flatMap((id) =>
      [...runtime.containers.values()].filter((c) => c.sandboxId === id).map((c) => c.id),
    );
    expect(calls()).toEqual([
      `StopContainer ${ids[1]}`,
      `StopPodSandbox ${db}`,
      `ExecSync ${ids[0]}`,
      `StopContainer ${ids[0]}`,
      `StopPodSandbox ${web}`,
    ]);
    expect((await stopAll()).ends).toEqual([]);
    expect(calls()).toEqual([]);
  });

  test("stops when a stopped pod is started again, and leaves the rest alone", async () => {
    const { run, stopAll, ready, runtime } = world([named("web"), named("db")]);
    await run("web");
    await run("db");
    let back: Promise<string> | undefined;
    const onEnd = ({ outcome }: StopEnd): void => {
      if (outcome === "stopped") back ??= run("db");
    };
    const { ends, cameBack } = await stopAll({ onEnd });
    expect(ends).toEqual(["db stopped", "web left something else was started again"]);
    expect(cameBack).toContain(`default/db was started again, in sandbox ${await back}`);
    expect(cameBack).toContain("systemctl disable --now kubelet");
    expect(ready()).toHaveLength(2);
    expect(runtime.running("app")).toHaveLength(2);
  });

  test("checks before each stop that a manifest still names the pod and that no other program took it", async () => {
    const { run, stopAll, ready, runtime } = world([named("web")]);
    const id = await run("web");
    expect((await stopAll({ podsToRun: async () => ({ pods: new Map(), refused: [] }) })).ends).toEqual([
      "web left no manifest names it now",
    ]);
    expect((await stopAll({ podsToRun: async () => null })).ends).toEqual(["web left the pods cannot be read now"]);
    // the sandbox id now belongs to another pod
    const podsToRun = async (): Promise<PodsToRun> => {
      const sandbox = runtime.sandboxes.get(id);
      if (sandbox !== undefined)
        runtime.sandboxes.set(id, {
          ...sandbox,
          config: { ...sandbox.config, metadata: { ...sandbox.config.metadata, uid: "foreign-2" } },
        });
      return { pods: new Map([["own-web", named("web")]]), refused: [] };
    };
    expect((await stopAll({ podsToRun })).ends).toEqual([
      `web failed sandbox ${id} is default/web's now, uid foreign-2`,
    ]);
    expect(ready()).toEqual([id]);
  });

  test("that was interrupted is completed by the next run", async () => {
    const { run, stopAll, ready, runtime } = world([named("web"), named("db")]);
    for (const name of ["web", "db"]) await run(name);
    // the container has stopped, and its sandbox has not
    const [, db] = runtime.containers.values();
    runtime.exit(db?.id ?? "", 0);
    const stopped = AbortSignal.abort();
    expect((await stopAll({}, stopped)).ends).toEqual(["db left interrupted", "web left interrupted"]);
    expect(ready()).toHaveLength(2);
    expect((await stopAll()).ends).toEqual(["db stopped", "web stopped"]);
    expect(ready()).toEqual([]);
  });
});
