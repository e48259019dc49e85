import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ContainerConfig, SandboxConfig } from "../../actuator/containerd/messages.ts";
import { OWNER } from "../../actuator/lifecycle/runtime-pod.ts";
import type { Draws } from "../actuator/cgroups/draws.ts";
import type { SimApi } from "./api.ts";
import type { Trouble } from "./fake-pod-parts.ts";
import { asAnother, deletedAt, type MadePod, madePod, programOf, withImage } from "./pods-made.ts";
import type { PodsNode } from "./pods-node.ts";

/** What happens to a node between two looks at it. */
export interface Story {
  readonly node: PodsNode;
  readonly api: SimApi;
  readonly d: Draws;
  /** All pods that ever were asked for, by uid. */
  readonly made: Map<string, MadePod>;
  /** What the source tells now. */
  readonly wanted: Map<string, MadePod>;
  pods: number;
  images: number;
  isHealed: boolean;
}

/** Answers whether it could happen. */
type Event = (story: Story) => boolean | Promise<boolean>;

export const EVENTS: Readonly<Record<string, Event>> = {
  "pods come": (s) => {
    for (let i = s.d.below(3); i >= 0; i--)
      ask(
        s,
        madePod(s.d, ++s.pods, () => imageOf(s), false),
      );
    return true;
  },
  "more pods come": (s) =>
    ask(
      s,
      madePod(s.d, ++s.pods, () => imageOf(s), false),
    ),
  "a critical pod comes": (s) =>
    ask(
      s,
      madePod(s.d, ++s.pods, () => imageOf(s), true),
    ),
  "a pod goes": (s) => {
    const one = anyOf(s);
    return one !== null && withdraw(s, one.uid);
  },
  "pods go": (s) => {
    for (const uid of [...s.wanted.keys()]) if (s.d.chance(2)) withdraw(s, uid);
    return true;
  },
  "a pod's end is asked for": (s) => {
    const one = anyOf(s);
    if (one === null) return false;
    const at = new Date(s.node.time.nowMs()).toISOString();
    tell(s, deletedAt(one, at, s.d.pick([0, 1, 20])));
    s.wanted.delete(one.uid);
    return true;
  },
  "a pod gets another image": (s) => {
    const one = anyOf(s);
    return one !== null && ask(s, withImage(one, imageOf(s)));
  },
  "a manifest is edited": (s) => {
    const one = anyOf(s);
    if (one === null) return false;
    withdraw(s, one.uid);
    return ask(s, asAnother(one, `u${String(++s.pods).padStart(4, "0")}`));
  },
  "a container exits": (s) => {
    const running = s.node.runtime.ownContainers.filter(({ state }) => state === "running");
    if (running.length === 0) return false;
    s.node.runtime.exit(s.d.pick(running).id, s.d.pick([0, 1, 137]));
    return true;
  },
  "a sandbox dies": (s) => {
    const ready = [...s.node.runtime.sandboxes.values()].filter(({ isReady }) => isReady);
    if (ready.length === 0) return false;
    const one = s.d.pick(ready);
    if (one.config.metadata.uid.startsWith("foreign")) return false;
    for (const c of s.node.runtime.ownContainers) if (c.sandboxId === one.id) s.node.runtime.exit(c.id, 137);
    one.isReady = false;
    s.node.runtime.dropSandboxCgroup(one);
    return true;
  },
  "an image that was missing is pushed": (s) => push(s),
  "a call fails": (s) =>
    trouble(s, (call) => ({ effect: s.d.chance(2), answer: { call, code: "UNKNOWN", message: "it fails" } })),
  "a call fails for a while": (s) => keepsFailing(s),
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
    node.source = "unreadable";
    return true;
  },
  "the source is partial": ({ node, d, wanted }) => {
    node.source = "partial";
    node.missing.clear();
    for (const uid of wanted.keys()) if (d.chance(2)) node.missing.add(uid);
    return true;
  },
  "the source is whole again": ({ node }) => {
    node.source = "whole";
    return true;
  },
  "the machine reboots": ({ node, d }) => {
    node.reboot(d.chance(2));
    return true;
  },
};

export function newStory(node: PodsNode, api: SimApi, d: Draws): Story {
  const story: Story = { node, api, d, made: new Map(), wanted: new Map(), pods: 0, images: 0, isHealed: false };
  const { runtime } = node;
  runtime.images.set("app:1", { id: "sha256:app1" });
  runtime.images.set("app:2", { id: "sha256:app2" });
  runtime.programOf = (container) => programOf(container, story.isHealed);
  return story;
}

/** Sandboxes and containers of nobody, and of another daemon. */
export async function addForeign({ node }: Story): Promise<void> {
  for (const [uid, labels] of Object.entries({ "foreign-1": {}, "foreign-2": { [OWNER]: "/another" } })) {
    const metadata = { name: "guest", namespace: "other", uid, attempt: 77 };
    const sandbox: SandboxConfig = { metadata, labels, linux: { cgroupParent: "/" } };
    const made = await node.runtime.runSandbox(sandbox);
    if (!made.ok) throw new Error(made.error.message);
    const config: ContainerConfig = { metadata: { name: "guest", attempt: 0 }, image: { image: "app:1" }, labels };
    const container = await node.runtime.createContainer(made.value, config, sandbox);
    if (!container.ok) throw new Error(container.error.message);
    await node.runtime.startContainer(container.value);
  }
}

/** All faults end. */
export function heal(s: Story): void {
  const { node, api } = s;
  s.isHealed = true;
  api.reachable = true;
  node.disk.isFull = false;
  node.source = "whole";
  node.death = null;
  node.runtime.on = () => undefined;
  node.runtime.restart();
  while (push(s));
  for (const one of node.runtime.ownContainers) {
    const [what] = one.config.command ?? [];
    if (what === "crash") node.runtime.exit(one.id, 1);
  }
}

function ask(s: Story, one: MadePod): boolean {
  s.made.set(one.uid, one);
  s.wanted.set(one.uid, one);
  return tell(s, one);
}
function tell({ node }: Story, one: MadePod): boolean {
  node.desired.set(one.uid, one.object);
  return true;
}
function withdraw(s: Story, uid: string): boolean {
  s.wanted.delete(uid);
  return s.node.desired.delete(uid);
}
function anyOf({ wanted, d }: Story): MadePod | null {
  return wanted.size === 0 ? null : d.pick([...wanted.values()]);
}

/** One in five is not there yet. */
function imageOf(s: Story): string {
  return s.d.chance(5) ? `late:${++s.images}` : s.d.pick(["app:1", "app:2"]);
}
function push({ node, images }: Story): boolean {
  for (let i = 1; i <= images; i++) {
    const name = `late:${i}`;
    if (node.runtime.registry.has(name)) continue;
    node.runtime.registry.set(name, { id: `sha256:late${i}`, takesMs: 1500 });
    return true;
  }
  return false;
}

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
/** Once, at the next call of a kind. */
function trouble({ node: { runtime }, d }: Story, of: (call: string) => Trouble): boolean {
  const call = d.pick(TROUBLED);
  runtime.on = (one) => {
    if (one.call !== call) return undefined;
    runtime.on = () => undefined;
    return of(call);
  };
  return true;
}

/** Until the next trouble. */
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
