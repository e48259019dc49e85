import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { SERVES, type Trouble } from "../../sim/fake-pod-parts.ts";
import { upWith, workerWorld } from "./worker-kit.ts";

const sidecars = (...names: string[]) => names.map((name) => runnableContainer(name, { isSidecar: true }));

describe("ending a pod", () => {
  test("stops its containers, then its sandbox", async () => {
    const { end, calls, takeMessages, runtime } = await upWith(
      runnable({ containers: [runnableContainer("a"), runnableContainer("b")] }),
    );
    expect(await end(runnable())).toEqual({ isEnded: true, error: null });
    const asked = calls();
    expect(asked.slice(0, 2).sort()).toEqual(["StopContainer container-2", "StopContainer container-3"]);
    expect(asked.slice(2)).toEqual(["StopPodSandbox sandbox-1"]);
    expect(takeMessages().sort()).toEqual(["Killing a: Stopping container a", "Killing b: Stopping container b"]);
    expect([...runtime.sandboxes.values()].map(({ isReady }) => isReady)).toEqual([false]);
  });
  test("stops sidecars after the containers, the last sidecar first", async () => {
    const web = runnable({ initContainers: sidecars("s1", "s2"), containers: [runnableContainer("app")] });
    const { end, calls, seconds, runtime } = await upWith(web, { app: { stopsMs: 4000 }, s2: { stopsMs: 3000 } });
    await end(web, 30);
    expect(calls()).toEqual([
      "StopContainer container-4",
      "StopContainer container-3",
      "StopContainer container-2",
      "StopPodSandbox sandbox-1",
    ]);
    expect(seconds()).toBe(7);
    expect([...runtime.containers.values()].map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  });
  test("kills a container after its grace period, and the sidecars behind it two seconds later", async () => {
    const web = runnable({ initContainers: sidecars("s1"), containers: [runnableContainer("app")] });
    const { end, seconds, runtime } = await upWith(web, { app: { stopsMs: null }, s1: { stopsMs: null } });
    await end(web, 10);
    expect(seconds()).toBe(12);
    expect([...runtime.containers.values()].map(({ exitCode }) => exitCode)).toEqual([137, 137]);
  });
  test("runs preStop hooks within the grace period, and leaves the stop at least two seconds", async () => {
    const asked: number[] = [];
    const hook = (seconds: number) => runnableContainer("app", { preStop: { sleepSeconds: seconds } });
    for (const sleep of [4, 9, 60]) {
      const web = runnable({ containers: [hook(sleep)] });
      const { end, seconds } = await upWith(web, { app: { stopsMs: null } });
      await end(web, 10);
      asked.push(seconds());
    }
    expect(asked).toEqual([10, 11, 12]);
  });
  test("goes on after a preStop hook that fails or takes too long", async () => {
    const web = runnable({ containers: [runnableContainer("app", { preStop: { exec: ["bye"] } })] });
    const fails = await upWith(web, { app: { exec: () => ({ exitCode: 1 }) } });
    expect((await fails.end(web)).isEnded).toBe(true);
    expect(fails.takeMessages()).toEqual([
      "Killing app: Stopping container app",
      "FailedPreStopHook app: PreStopHook failed",
    ]);
    const hangs = await upWith(web, { app: { exec: () => ({ takesMs: 3_600_000 }) } });
    expect((await hangs.end(web, 20)).isEnded).toBe(true);
    expect([hangs.seconds(), hangs.calls().at(-1)]).toEqual([20, "StopPodSandbox sandbox-1"]);
  });
  test("runs no preStop hook when the pod's spec is unknown", async () => {
    const web = runnable({ containers: [runnableContainer("app", { preStop: { sleepSeconds: 5 } })] });
    const { end, seconds, calls } = await upWith(web);
    expect((await end(null)).isEnded).toBe(true);
    expect([seconds(), calls()]).toEqual([0, ["StopContainer container-2", "StopPodSandbox sandbox-1"]]);
  });
  test("succeeds when repeated after any stop call that failed, hung or crashed", async () => {
    for (const call of ["StopContainer", "StopPodSandbox"])
      for (const effect of [true, false])
        for (const answer of ["dies", "hangs", { call, code: "UNKNOWN", message: "no" }] as Trouble["answer"][]) {
          const { end, runtime, takeMessages } = await upWith(runnable());
          runtime.on = (one) => (one.call === call && one.count === 1 ? { effect, answer } : undefined);
          const first = await end(runnable());
          expect([first.isEnded, first.error]).toEqual([
            false,
            expect.stringMatching(/^error killing pod: \[?failed to/),
          ]);
          expect(takeMessages().at(-1)).toBe(`FailedKillPod: ${first.error}`);
          runtime.restart();
          expect(await end(runnable()), `${call} ${effect} ${JSON.stringify(answer)}`).toEqual({
            isEnded: true,
            error: null,
          });
          expect([runtime.running("app"), runtime.wrongs]).toEqual([[], []]);
        }
  });
  test("can be aborted between steps", async () => {
    const stop = new AbortController();
    const web = runnable({ containers: [runnableContainer("app", { preStop: { sleepSeconds: 20 } })] });
    const { end, calls, time } = await upWith(web);
    time.after(5000, () => stop.abort());
    expect((await end(web, 30, stop.signal)).isEnded).toBe(false);
    expect(calls()).toEqual([]);
  });
});

describe("forgetting a pod", () => {
  test("leaves no container, sandbox, log or directory of it", async () => {
    const { end, forget, roots, runtime, calls, dir } = await upWith(runnable());
    mkdirSync(join(dir, "logs/default_other_uid-9"));
    await end(runnable());
    calls();
    writeFileSync(join(roots.podLogsDirectory, "default_web_uid-1/app/0.log"), "");
    expect(await forget(runnable())).toEqual({ isGone: true, leftOvers: [] });
    expect(calls()).toEqual(["StopPodSandbox sandbox-1", "RemoveContainer container-2", "RemovePodSandbox sandbox-1"]);
    expect([runtime.containers.size, runtime.sandboxes.size, runtime.wrongs]).toEqual([0, 0, []]);
    expect(existsSync(join(roots.podsDirectory, "uid-1"))).toBe(false);
    expect(existsSync(join(roots.podLogsDirectory, "default_web_uid-1"))).toBe(false);
    expect(existsSync(join(dir, "logs/default_other_uid-9"))).toBe(true);
    expect(await forget(runnable())).toEqual({ isGone: true, leftOvers: [] });
  });
  test("is refused while a container runs", async () => {
    const { forget, calls, roots } = await upWith(runnable());
    expect(await forget(runnable())).toEqual({
      isGone: false,
      leftOvers: [{ path: "container-2", why: "container app runs still" }],
    });
    expect(calls()).toEqual([]);
    expect(existsSync(join(roots.podsDirectory, "uid-1"))).toBe(true);
  });
  test("stops the sandbox first where a container cannot be removed until then", async () => {
    const { up, forget, runtime } = workerWorld();
    const code = "FAILED_PRECONDITION";
    const message = 'failed to delete task: cannot delete running task "container-2"';
    runtime.programOf = () => ({ ...SERVES, startFault: "failed to get task pid: context canceled" });
    runtime.on = ({ call }) =>
      call === "RemoveContainer" && runtime.sandboxes.get("sandbox-1")?.isReady === true
        ? { effect: false, answer: { call, code, message } }
        : undefined;
    await up(runnable());
    expect(runtime.containers.get("container-2")?.reason).toBe("StartError");
    expect(runtime.sandboxes.get("sandbox-1")?.isReady).toBe(true);
    expect(await forget(runnable())).toEqual({ isGone: true, leftOvers: [] });
    expect([runtime.containers.size, runtime.sandboxes.size, runtime.wrongs]).toEqual([0, 0, []]);
  });
  test("keeps the pod's files while the runtime still has a sandbox or container of the pod", async () => {
    for (const call of ["RemoveContainer", "StopPodSandbox", "RemovePodSandbox"]) {
      const { end, forget, runtime, roots } = await upWith(runnable());
      await end(runnable());
      runtime.on = (one) =>
        one.call === call ? { effect: false, answer: { call, code: "UNKNOWN", message: "busy" } } : undefined;
      const forgotten = await forget(runnable());
      const path = call === "RemoveContainer" ? "container-2" : "sandbox-1";
      expect(forgotten).toEqual({ isGone: false, leftOvers: [{ path, why: `${call}: UNKNOWN: busy` }] });
      expect(existsSync(join(roots.podsDirectory, "uid-1"))).toBe(true);
      runtime.on = () => undefined;
      expect(await forget(runnable())).toEqual({ isGone: true, leftOvers: [] });
    }
  });
});

test("after a crash at any runtime call the next turn starts the pod exactly once", async () => {
  for (const call of ["RunPodSandbox", "CreateContainer", "StartContainer"])
    for (const effect of [true, false]) {
      const { up, sync, seenOf, runtime, time, worker } = workerWorld();
      runtime.on = (one) => (one.call === call && one.count === 1 ? { effect, answer: "never" } : undefined);
      void up(runnable()).catch(() => {});
      await time.pass(1000).catch(() => {});
      runtime.on = () => undefined;
      const seen = await seenOf();
      const sandbox = seen?.sandboxes[0];
      const app = seen?.containers[0];
      const start = app?.state === "running" ? [] : [{ name: "app", attempt: app === undefined ? 0 : app.attempt + 1 }];
      const turn = await sync(runnable(), {
        createSandbox: sandbox === undefined,
        sandboxId: sandbox?.id ?? null,
        toStart: start,
      });
      expect([turn.error, turn.faults], `${call} ${effect}`).toEqual([null, {}]);
      expect([runtime.running("app").length, runtime.sandboxes.size, runtime.wrongs], call).toEqual([1, 1, []]);
      expect(worker).toBeDefined();
    }
});

test("a sandbox name that is taken is reported in containerd's words", async () => {
  const { up, runtime } = workerWorld();
  await up(runnable());
  expect((await up(runnable())).error).toBe(
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to reserve sandbox name "web_default_uid-1_0": name "web_default_uid-1_0" is reserved for "sandbox-1"',
  );
  expect(runtime.sandboxes.size).toBe(1);
});
