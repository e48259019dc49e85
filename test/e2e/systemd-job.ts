// Runs in the guest as a service, without a test framework, bundled into one file: does systemd run the daemon as its
// unit says, and does the daemon then run pods? Prints one line per check, then the number of checks; exits with 1 if a
// check failed.
import { at, runChecks } from "./vm/checks.ts";
import { SystemdMachine, UNIT } from "./vm/systemd-machine.ts";
import { systemdStory } from "./vm/systemd-story.ts";

process.on("exit", () => console.log(`ended after ${at()}`));
const machine = new SystemdMachine();
await runChecks(systemdStory(machine), () => [machine.journal(UNIT), machine.journal()]);
process.exit();
