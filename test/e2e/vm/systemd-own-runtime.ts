import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { IMAGE, podOf } from "../pods/manifest.ts";
import type { Check } from "./checks.ts";
import { UNIT } from "./systemd-machine.ts";
import type { SystemdStory } from "./systemd-shared.ts";

const RUNTIME = "nodewise-containerd";
const SOCKET = "/run/nodewise/containerd/containerd.sock";
/** The image that containerd's configuration names; the guest cannot reach a registry. */
const PAUSE = "registry.k8s.io/pause:3.10";
const LOGS = "/var/log/nodewise/pods";

/** Follows docs/guide/beside-a-kubelet.md: a second containerd beside the machine's own. */
export const ownRuntime = (story: SystemdStory): readonly Check[] => [
  {
    name: "a second containerd runs beside the machine's, and only it runs the daemon's pods",
    run: async () => {
      const { machine } = story;
      machine.systemctl("daemon-reload");
      machine.systemctl("enable", "--now", RUNTIME);
      assert.match(await machine.ctr(["version"], SOCKET), /Server:/);
      await machine.importImage(SOCKET);
      await machine.ctr(["images", "tag", IMAGE, PAUSE], SOCKET);
      machine.configure({ runtimeEndpoint: `unix://${SOCKET}`, podLogsDirectory: LOGS });
      machine.put("own", podOf("own"));
      machine.systemctl("start", UNIT);
      story.row = await machine.running("own");
      assert.equal(await machine.ctr(["containers", "list", "--quiet"]), "");
      const held = readdirSync("/run/nodewise/runc/k8s.io");
      assert.ok(held.includes(story.pod.containers[0]?.id ?? "none"), held.join());
      assert.ok(readdirSync(LOGS).includes(`default_${story.pod.name}_${story.pod.uid}`));
    },
  },
  {
    name: "its restart ends no process of a pod, and does not affect the machine's containerd",
    run: async () => {
      const { machine } = story;
      const [processes, others] = [story.processes(), machine.property("MainPID", "containerd")];
      const pid = machine.property("MainPID", RUNTIME);
      machine.systemctl("restart", RUNTIME);
      assert.notEqual(machine.property("MainPID", RUNTIME), pid);
      await machine.until("the runtime back", ({ problems }) => (problems.length === 0 ? true : undefined));
      await story.finds(machine.pid());
      assert.deepEqual(story.processes(), processes);
      machine.remove("own");
      await machine.until("its end", ({ pods }) => (pods.length === 0 ? true : undefined));
      machine.systemctl("stop", UNIT);
      machine.systemctl("disable", "--now", RUNTIME);
      assert.deepEqual(
        [machine.property("Result", RUNTIME), machine.property("MainPID", "containerd"), existsSync(SOCKET)],
        ["success", others, false],
      );
    },
  },
];
