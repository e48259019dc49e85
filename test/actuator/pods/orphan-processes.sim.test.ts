import { describe, expect, test } from "vitest";
import type { RuntimePod } from "../../../actuator/containerd/cri.ts";
import type { Skip } from "../../../actuator/plan/step.ts";
import { OrphanProcesses } from "../../../actuator/pods/cgroups/orphan-processes.ts";
import { err, ok } from "../../../api/base/result.ts";
import { SimClock } from "../../sim/clock.ts";
import { PodTime } from "../../sim/pod-time.ts";
import { ROOT, simulated } from "../cgroups/hierarchy-kit.ts";

const UID = "0f1e2d3c-0000-4000-8000-000000000000";
const PATH = `/kubepods/besteffort/pod${UID}`;
const INTERVAL_MS = 60_000;
const NOBODYS = "no pod and no sandbox of the runtime accounts for it";
const skip = (path: string): Skip => ({ path, file: null, code: "has_processes", message: "" });

const must = (made: { readonly ok: boolean }): void => {
  if (!made.ok) throw new Error(JSON.stringify(made));
};

/** A cgroup of an unknown pod, with process 7 and, in a child cgroup, process 8. */
async function world(version: 1 | 2, path = PATH) {
  const { kernel, hierarchy } = simulated(version);
  const parts = path.split("/").slice(1);
  const above = parts.map((_, i) => `/${parts.slice(0, i + 1).join("/")}`);
  for (const one of ["/", ...above, `${path}/c1`]) must(await hierarchy.create(one, hierarchy.support().controllers));
  const cgroupsOf = (at: string) =>
    (version === 2 ? [""] : [...kernel.tops.keys()]).flatMap((mount) => kernel.find(mount, `${ROOT}${at}`) ?? []);
  const put = (at: string, ...pids: readonly number[]): void => {
    for (const cgroup of cgroupsOf(at)) for (const pid of pids) cgroup.processes.add(pid);
  };
  put(path, 7);
  put(`${path}/c1`, 8);
  const starts = new Map([7, 8].map((pid) => [pid, `start-${pid}`]));
  const killed: number[] = [];
  const state = { held: new Map<string, RuntimePod>(), answers: true, stubborn: false };
  const leave = (pid: number): void => {
    for (const at of [path, `${path}/c1`]) for (const cgroup of cgroupsOf(at)) cgroup.processes.delete(pid);
  };
  const processes = {
    startOf: (pid: number) => starts.get(pid),
    nameOf: (pid: number) => `runc-${pid}`,
    kill: (pid: number) => {
      if (state.stubborn) return "kill EPERM";
      killed.push(pid);
      leave(pid);
      return undefined;
    },
  };
  const messages: string[] = [];
  const time = new PodTime(new SimClock(0));
  const orphans = new OrphanProcesses(
    {
      hierarchy,
      clock: time,
      processes,
      runtime: {
        pods: async () =>
          state.answers ? ok(state.held) : err({ call: "ListPodSandbox", code: "UNAVAILABLE", message: "away" }),
      },
      onProblem: ({ message }) => void messages.push(message),
    },
    { cgroupRoot: ROOT, intervalMs: INTERVAL_MS },
  );
  /** Runs passes over the cgroups, at their usual times. */
  const passes = async (count: number, skipped = [skip(path)]) => {
    let problems: readonly string[] = [];
    for (let i = 0; i < count; i++) {
      if (i > 0) await time.pass(INTERVAL_MS);
      problems = (await orphans.reap(skipped)).problems.map(({ message }) => message);
    }
    return problems;
  };
  const next = async () => {
    await time.pass(INTERVAL_MS);
    return passes(1);
  };
  return { passes, next, put, killed, messages, state, starts, hierarchy };
}

describe.each([1, 2] as const)("processes in the cgroup of an unknown pod, cgroup v%i", (version) => {
  test("are reported with path and ids at once, and killed and logged in the third pass", async () => {
    const { passes, next, killed, messages } = await world(version);
    const problem = `cgroup ${ROOT}${PATH} holds processes 7 (runc-7), 8 (runc-8): ${NOBODYS}; they are killed if 3 passes see them`;
    expect(await passes(2)).toEqual([problem]);
    expect(killed).toEqual([]);
    expect(await next()).toEqual([]);
    expect(killed).toEqual([7, 8]);
    expect(messages).toEqual([
      `killed process 7 (runc-7) in cgroup ${ROOT}${PATH}: ${NOBODYS}`,
      `killed process 8 (runc-8) in cgroup ${ROOT}${PATH}/c1: ${NOBODYS}`,
    ]);
  });
  test("are killed also in a cgroup with the systemd driver's name", async () => {
    const path = `/kubepods.slice/kubepods-pod${UID.replaceAll("-", "_")}.slice`;
    const { passes, state, next, killed } = await world(version, path);
    state.held.set(UID, {} as RuntimePod);
    await passes(4, [skip(path)]);
    expect(killed).toEqual([]);
    state.held.clear();
    for (let i = 0; i < 3; i++) await next();
    expect(killed).toEqual([7, 8]);
  });
});

describe("orphan processes are not killed", () => {
  test("while the runtime holds anything of the pod", async () => {
    const { passes, state, killed } = await world(1);
    state.held.set(UID, {} as RuntimePod);
    expect([await passes(5), killed]).toEqual([[], []]);
  });
  test("while the runtime does not answer, but still reported", async () => {
    const { passes, next, state, killed } = await world(1);
    await passes(2);
    state.answers = false;
    expect([(await next()).length, (await next()).length, killed]).toEqual([1, 1, []]);
    state.answers = true;
    await next();
    expect(killed).toEqual([7, 8]);
  });
  test("when the passes follow each other too closely", async () => {
    const { passes, killed } = await world(1);
    for (let i = 0; i < 5; i++) await passes(1);
    expect(killed).toEqual([]);
  });
  test("when their cgroup is not a pod's", async () => {
    const { passes, killed } = await world(1, "/kubepods/besteffort/other");
    expect([await passes(5), killed]).toEqual([[], []]);
  });
  test("when another process has their id by now, or they have left the cgroup", async () => {
    const { passes, starts, killed, hierarchy } = await world(1);
    const listed = hierarchy.pids.bind(hierarchy);
    let asked = 0;
    hierarchy.pids = (path) => {
      // between the list and the kill, 7 moves to another cgroup, and another process gets the id 8
      if (++asked > 2) starts.set(8, `start-8-${asked}`);
      return listed(path).filter((pid) => pid !== 7 || asked <= 2);
    };
    await passes(3);
    expect(killed).toEqual([]);
  });
  test("when they are in another pid namespace, but still reported", async () => {
    const { passes, put, killed } = await world(1);
    put(PATH, 0);
    expect((await passes(4)).length).toBe(1);
    expect(killed).toEqual([7, 8]);
  });
});

test("processes that cannot be killed are reported with the error, and killed in a later pass", async () => {
  const { passes, next, state, killed } = await world(1);
  state.stubborn = true;
  expect((await passes(3))[0]).toContain("they could not be killed: 7: kill EPERM; 8: kill EPERM");
  state.stubborn = false;
  await next();
  expect(killed).toEqual([7, 8]);
});
