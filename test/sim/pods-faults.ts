import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Trouble } from "./fake-pod-parts.ts";
import { type Event, type Story, withdraw } from "./pods-story.ts";

/** Faults around a daemon. */
export const FAULTS: Readonly<Record<string, Event>> = {
  "a call fails": (s) =>
    trouble(s, (call) => ({ effect: s.d.chance(2), answer: { call, code: "UNKNOWN", message: "it fails" } })),
  "a call fails for a while": keepsFailing,
  "a call hangs": (s) => trouble(s, () => ({ effect: s.d.chance(2), answer: "hangs" })),
  "the runtime dies in a call": (s) => trouble(s, () => ({ effect: s.d.chance(2), answer: "dies" })),
  "the runtime goes or comes": ({ node }) => {
    node.runtime.isDown = !node.runtime.isDown;
    return true;
  },
  "the API goes or comes": ({ api }) => {
    api.reachable = !api.reachable;
    return true;
  },
  "the daemon is killed at a call": (s) => die(s, "runtime", 12),
  "the daemon is killed at a file": (s) => die(s, "file", 25),
  "the daemon is killed at a cgroup": (s) => die(s, "cgroup", 12),
  "the daemon is stopped": async ({ node }) => {
    await node.stop();
    return true;
  },
  "records vanish": async (s) => {
    const directory = join(s.node.stateDir, "pods");
    if (!existsSync(directory)) return false;
    s.node.kill();
    const files = readdirSync(directory).filter(() => s.d.chance(2));
    for (const file of files) {
      rmSync(join(directory, file));
      s.node.lost.add(file.slice(0, file.indexOf(".")));
    }
    const withdrawn = s.d.chance(3) ? [...s.wanted.keys()].filter(() => s.d.chance(3)) : [];
    for (const uid of withdrawn) withdraw(s, uid);
    return files.length > 0;
  },
  "the clock is set": ({ node, d }) => {
    node.time.wallOffsetMs += d.pick([-7_200_000, -60_000, 60_000, 7_200_000]);
    return true;
  },
  "the disk is full or has room again": ({ node: { disk } }) => {
    disk.isFull = !disk.isFull;
    return true;
  },
  "the source cannot be read": ({ node }) => {
    node.source.state = "unreadable";
    return true;
  },
  "the source is partial": ({ node, d, wanted }) => {
    node.source.state = "partial";
    node.source.missing.clear();
    for (const uid of wanted.keys()) if (d.chance(2)) node.source.missing.add(uid);
    return true;
  },
  "the source is whole again": ({ node }) => {
    node.source.state = "whole";
    return true;
  },
  // without this event, in half of all stories the node would not work at all
  "all is mended for now": ({ node, api }) => {
    Object.assign(node.runtime, { isDown: false, on: () => undefined });
    Object.assign(node.disk, { isFull: false });
    Object.assign(node.source, { state: "whole" });
    api.reachable = true;
    return true;
  },
  "the machine reboots": ({ node, d }) => {
    node.reboot(d.chance(2));
    return true;
  },
};

const TROUBLED = [
  "ListContainers",
  "RunPodSandbox",
  "CreateContainer",
  "StartContainer",
  "StopContainer",
  "StopPodSandbox",
  "RemoveContainer",
  "RemovePodSandbox",
  "UpdateContainerResources",
  "PullImage",
];
/** The fault occurs once, at the next call of a kind. */
function trouble({ node: { runtime }, d }: Story, of: (call: string) => Trouble): boolean {
  const call = d.pick(TROUBLED);
  runtime.on = (one) => {
    if (one.call !== call) return undefined;
    runtime.on = () => undefined;
    return of(call);
  };
  return true;
}

/** The fault lasts until the next one. */
function keepsFailing({ node: { runtime }, d }: Story): boolean {
  const failing = d.pick(TROUBLED);
  runtime.on = ({ call }) =>
    call === failing ? { effect: false, answer: { call, code: "UNKNOWN", message: "it fails" } } : undefined;
  return true;
}

function die({ node, d }: Story, effect: "runtime" | "file" | "cgroup", most: number): boolean {
  const plan = { effect, after: d.below(most), isDone: d.chance(2) };
  if (node.daemon === null) node.death = plan;
  else node.daemon.life.diesAt(plan);
  return true;
}
