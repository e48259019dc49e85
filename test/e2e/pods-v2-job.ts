// Runs in the guest, without a test framework, bundled into one file: does the daemon run pods on a real containerd
// with cgroup v2? Prints one line per check, then the number of checks; exits with 1 if a check failed. Each check
// builds on the checks before it.
import { at, runChecks } from "./vm/checks.ts";
import { GuestNode } from "./vm/guest-node.ts";
import { podsStory } from "./vm/pods-story.ts";

process.on("exit", () => console.log(`ended after ${at()}`));
const node = await GuestNode.start();
console.log(`containerd answers after ${at()}`);
await runChecks(podsStory(node), () => node.messages);
await node.stopDaemon();
// the virtual machine ends with this process, so the containers need not be stopped
process.exit();
