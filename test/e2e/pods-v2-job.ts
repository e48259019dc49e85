// Runs in the guest, without a test framework, bundled into one file: does the daemon run pods on a real containerd with
// cgroup v2? Prints one line a check, then how many ran; exits with 1 when one failed. The checks go on from each other.
import { GuestNode } from "./vm/pods-ground.ts";
import { podsStory } from "./vm/pods-story.ts";

const from = performance.now();
const at = (): string => `${((performance.now() - from) / 1000).toFixed(1)} s`;
process.on("exit", () => console.log(`ended after ${at()}`));
const node = await GuestNode.start();
console.log(`containerd answers after ${at()}`);
const checks = podsStory(node);
for (const { name, run } of checks) {
  try {
    await run();
    console.log(`ok   ${name} (${at()})`);
  } catch (error) {
    console.log(`FAIL ${name} (${at()}): ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
if (process.exitCode === 1) console.log(["what the daemon told:", ...node.told].join("\n  "));
await node.stopDaemon();
console.log(`${checks.length} checks ran`);
// the machine ends with this process: what still runs in it needs no other end
process.exit();
