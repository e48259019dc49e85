import { expect, test } from "vitest";
import { SETTINGS } from "../../actuator/core/config.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

function scratch(): string {
  const dir = scratchFolder();
  return dir;
}
const SLOW = { timeout: 180_000 };

test.each<[string, readonly string[], RegExp]>([
  [
    "a kubelet's cgroups",
    ["actuator", "--dry-run", "--cgroup-root", "/kubepods"],
    /--cgroup-root: `kubepods` is a kubelet's own tree/,
  ],
  [
    "the whole machine's, were it not a dry run",
    ["actuator", "--dry-run", "--mode", "enforce", "--cgroup-root", "/"],
    /--cgroup-root: `\/` is the whole machine/,
  ],
  [
    "a node's name",
    ["actuator", "--dry-run", "--node-name", "Bad_Name"],
    /--node-name: must be a node's name .* not the text `Bad_Name`/,
  ],
  [
    "a kubelet's version",
    ["actuator", "--dry-run", "--kubelet-version", "1.33"],
    /--kubelet-version: must be the version of a known kubelet: 1\.34 or 1\.35 or .*, not the text `1\.33`/,
  ],
  ["this machine's name", ["up", "--port", "0", "--node-name", "Bad_Name"], /nodeName: must be a node's name/],
  ["a token's node", ["token", "create", "ci", "--node", "Bad Name!"], /A node's name must be letters/],
  ["a token's name", ["token", "create", " "], /must not be empty: give its owner/],
  [
    "a host with a scheme",
    ["api", "--port", "0", "--allow-host", "a.example", "https://b.example/"],
    /Expected only the name of a host/,
  ],
])("a setting with an invalid value is refused: %s", SLOW, async (_, args, why) => {
  const { code, stderr } = await run(args, { env: { NODEWISE_DATA_DIR: scratch(), XDG_STATE_HOME: scratch() } });
  expect([code, stderr]).toEqual([2, expect.stringMatching(why)]);
});

test("every setting of the daemon is an option of the same name", SLOW, async () => {
  const { stdout } = await run(["actuator", "--help"]);
  for (const setting of SETTINGS) {
    const name = setting.replace(/[A-Z]+(?![a-z])|[A-Z]/g, (letters) => `-${letters.toLowerCase()}`);
    expect(stdout).toMatch(new RegExp(`^ +--(?:no-)?${name}\\b`, "m"));
  }
});

test("a status open to the network gives a warning, also in a dry run", SLOW, async () => {
  const args = ["actuator", "--dry-run", "--status-listen", "0.0.0.0:10260", "--cgroup-root", "/nodewise-none"];
  const { stderr } = await run(args, { env: { XDG_STATE_HOME: scratch() } });
  expect(stderr).toMatch(/settings: statusListen: 0\.0\.0\.0:10260 answers every client that reaches this machine/);
});
