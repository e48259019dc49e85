import assert from "node:assert/strict";
import type { Check } from "./checks.ts";
import { UNIT } from "./systemd-machine.ts";
import type { SystemdStory } from "./systemd-shared.ts";

export const restarting = (story: SystemdStory): readonly Check[] => [
  {
    name: "a reload is reported, both of faulty and of accepted settings",
    run: async () => {
      const { machine } = story;
      const pid = machine.pid();
      const reportOf = (words: RegExp): Promise<true> =>
        machine.wait(String(words), () => (words.test(machine.journal(UNIT)) ? true : undefined));
      machine.configure({ syncSecond: 1 });
      machine.systemctl("reload", UNIT);
      await reportOf(/settings: .*actuator\.yaml:.*syncSecond: no such setting.*; the old settings stay/);
      machine.configure({ retrySeconds: 61 });
      machine.systemctl("reload", UNIT);
      await reportOf(/settings read again: retrySeconds 60 -> 61$/m);
      assert.deepEqual([machine.pid(), machine.property("NRestarts")], [pid, "0"]);
    },
  },
  {
    name: "a killed daemon is restarted, and no process of its pods ends",
    run: async () => {
      const { machine } = story;
      const [processes, killed] = [story.processes(), machine.pid()];
      process.kill(Number(killed), "SIGKILL");
      await machine.wait("another process", () =>
        machine.property("NRestarts") === "1" && machine.property("ActiveState") === "active" ? true : undefined,
      );
      assert.notEqual(machine.pid(), killed);
      await story.finds(machine.pid());
      assert.deepEqual(story.processes(), processes);
    },
  },
  {
    name: "a stop keeps the pods, a start with wrong settings is not repeated, and the next start finds the pods",
    run: async () => {
      const { machine } = story;
      const processes = story.processes();
      machine.systemctl("stop", UNIT);
      assert.equal(machine.property("ActiveState"), "inactive");
      machine.configure({ mode: "enforced" });
      machine.systemctl("start", UNIT);
      await machine.wait("its end", () => (machine.property("ActiveState") === "failed" ? true : undefined));
      // if systemd would restart it once more, the state would be activating
      const ended = ["ExecMainStatus", "NRestarts", "SubState"].map((name) => machine.property(name));
      assert.deepEqual(ended, ["2", "0", "failed"]);
      assert.match(machine.journal(UNIT), /actuator\.yaml:.*mode: /);
      assert.deepEqual(story.processes(), processes);
      machine.configure();
      machine.systemctl("start", UNIT);
      // a reload right after the start may end the daemon, but it must not keep the daemon from running
      machine.systemctl("reload", UNIT);
      await machine.wait("its start", () => (machine.property("ActiveState") === "active" ? true : undefined));
      await machine.until("it", ({ pid }) => (String(pid) === machine.pid() ? true : undefined));
      await story.finds(machine.pid());
      assert.deepEqual(story.processes(), processes);
    },
  },
];
