import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mountsBelow } from "../containerd/leftovers.ts";
import { isUp } from "../pods/daemon.ts";
import type { Check } from "./checks.ts";
import { CGROUPS, type SystemdMachine, textOf, UNIT } from "./systemd-machine.ts";
import { ownRuntime } from "./systemd-own-runtime.ts";
import { EVERY_VOLUME, HOST_FOLDER } from "./systemd-pod.ts";
import { restarting } from "./systemd-restarts.ts";
import { SystemdStory, wordsOf } from "./systemd-shared.ts";

const PODS = "/var/lib/nodewise/pods";
/** Bits of CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SYS_ADMIN and SYS_RESOURCE. */
const CAPABILITIES = [0, 1, 3, 4, 21, 24].reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n);

/** The checks from the daemon's first start to its last stop. */
export function systemdStory(machine: SystemdMachine): readonly Check[] {
  const story = new SystemdStory(machine);
  return [...coming(story), ...besideSystemd(story), ...restarting(story), ...going(story), ...ownRuntime(story)];
}

const coming = (story: SystemdStory): readonly Check[] => [
  {
    name: "systemd starts the daemon before the runtime, and delegates the controllers that the unit requests",
    run: async () => {
      const { machine } = story;
      assert.match(readlinkSync("/proc/1/exe"), /\/systemd$/);
      assert.deepEqual(wordsOf(`${CGROUPS}/cgroup.subtree_control`), ["memory", "pids"]);
      mkdirSync(HOST_FOLDER, { recursive: true });
      writeFileSync(join(HOST_FOLDER, "word"), "of the host\n");
      machine.configure();
      machine.put("web", EVERY_VOLUME);
      machine.systemctl("start", UNIT);
      assert.equal(machine.property("ActiveState"), "active");
      for (const name of ["cpu", "cpuset", "memory", "pids"]) {
        assert.ok(wordsOf(`${CGROUPS}/cgroup.subtree_control`).includes(name), `${name} is not handed on`);
      }
      machine.systemctl("start", "containerd");
      await machine.importImage();
    },
  },
  {
    name: "it runs a pod with every kind of volume",
    run: async () => {
      const { machine } = story;
      // a pass over the cgroups has seen the pod's container
      story.row = await machine.pod(
        "web",
        "running as decided",
        (row) =>
          isUp(row) &&
          row.cgroups.some(({ path }) => path.endsWith(`/${row.containers[0]?.id}`)) &&
          row.cgroups.every(({ files }) => files.every(({ actual }) => actual !== null)),
      );
      const log = await machine.wait("what it saw", () => {
        const lines = machine.log(story.pod, "app");
        return lines.includes("that is all") ? lines : undefined;
      });
      assert.deepEqual(log.slice(0, 4), [
        "/fast 0:1234 3777",
        "/fast/file 1000:1234 644",
        "/slow 0:1234 2777",
        "/slow/part 0:1234 2777",
      ]);
      assert.match(log[4] ?? "", /^tmpfs tmpfs rw,.*size=4096k/);
      assert.deepEqual(log.slice(5, 9), ["of the host", "part", "1000 1234", "that is all"]);
      const [pid] = wordsOf(join(story.cgroup, "cgroup.procs"));
      assert.equal(textOf(`/proc/${pid}/oom_score_adj`), "-997");
      assert.equal(textOf(join(story.cgroup, "cpu.max")), "100000 100000");
    },
  },
  {
    name: "the daemon has the rights that the unit gives, and no more",
    run: () => {
      const pid = story.machine.pid();
      const status = new Map(
        (textOf(`/proc/${pid}/status`) ?? "").split("\n").map((line) => line.split(":\t") as [string, string]),
      );
      const mask = CAPABILITIES.toString(16).padStart(16, "0");
      const expected = { NoNewPrivs: "1", Seccomp: "2", CapBnd: mask, CapEff: mask };
      const actual = Object.fromEntries(Object.keys(expected).map((key) => [key, status.get(key)]));
      assert.deepEqual(actual, expected);
      assert.equal(readlinkSync(`/proc/${pid}/ns/mnt`), readlinkSync("/proc/1/ns/mnt"));
      assert.equal(textOf(`/proc/${pid}/oom_score_adj`), "-999");
      assert.ok(existsSync("/var/lib/nodewise/actuator/pods"), "its state is not where the unit says");
    },
  },
];

const besideSystemd = (story: SystemdStory): readonly Check[] => [
  {
    name: "systemd's own cgroups are unchanged, and systemd reports no problem",
    run: () => {
      const service = join(CGROUPS, "system.slice/nodewise-actuator.service");
      assert.equal(textOf(`/proc/${story.machine.pid()}/cgroup`), "0::/system.slice/nodewise-actuator.service");
      for (const path of [service, join(CGROUPS, "system.slice")]) {
        const files = ["cpu.weight", "cpu.max", "memory.max", "cpuset.cpus"];
        const values = files.map((file) => textOf(join(path, file)));
        assert.deepEqual(values, ["100", "max 100000", "max", ""], path);
      }
      assert.equal(textOf(join(service, "pids.max")), "512");
      assert.deepEqual(story.machine.systemctl("list-units", "--failed", "--plain", "--no-legend"), "");
      assert.doesNotMatch(story.machine.journal(), /cgroup|nodewise/i);
    },
  },
  {
    name: "systemd changes no pod's cgroup after daemon-reload, daemon-reexec or the runtime's end",
    run: async () => {
      const { machine } = story;
      const before = machine.tree();
      const same = (when: string): void => assert.deepEqual(machine.tree(), before, when);
      machine.systemctl("daemon-reload");
      same("daemon-reload");
      machine.systemctl("daemon-reexec");
      same("daemon-reexec");
      machine.systemctl("set-property", "--runtime", "system.slice", "CPUWeight=50");
      machine.systemctl("set-property", "--runtime", "system.slice", "CPUWeight=");
      same("set-property of another slice");
      machine.systemctl("stop", "containerd");
      machine.systemctl("daemon-reload");
      same("the stop of a unit with the same controllers");
      machine.systemctl("start", "containerd");
      await machine.until("the runtime back", ({ problems }) => (problems.length === 0 ? true : undefined));
      same("its start");
    },
  },
];

const going = (story: SystemdStory): readonly Check[] => [
  {
    name: "the pod's end leaves no mount, directory or cgroup, and the daemon's end succeeds for systemd",
    run: async () => {
      const { machine } = story;
      machine.remove("web");
      const left = (): readonly string[] => [
        ...mountsBelow(PODS),
        ...readdirSync(PODS),
        ...Object.keys(machine.tree()).filter((path) => path.includes(story.pod.uid)),
      ];
      await machine.until("its end", ({ pods }) => (pods.length === 0 && left().length === 0 ? true : undefined));
      machine.systemctl("stop", UNIT);
      assert.deepEqual([machine.property("ActiveState"), machine.property("Result")], ["inactive", "success"]);
      assert.doesNotMatch(machine.journal(), /cgroup/i);
    },
  },
];
