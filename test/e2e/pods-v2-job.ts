// Runs in the guest, without a test framework, bundled into one file: does the daemon run pods on a real containerd with
// cgroup v2? Prints one line a check, then how many ran; exits with 1 when one failed. The checks go on from each other.
import { at, runChecks } from "./vm/checks.ts";
import { GuestNode } from "./vm/guest-node.ts";
import { podsStory } from "./vm/pods-story.ts";

process.on("exit", () => console.log(`ended after ${at()}`));
const node = await GuestNode.start();
console.log(`containerd answers after ${at()}`);
await runChecks(podsStory(node), () => node.messages);
await node.stopDaemon();
// the machine ends with this process: what still runs in it needs no other end
process.exit();
