import { OWNER } from "../../actuator/containerd/cri.ts";
import type { ContainerConfig, SandboxConfig } from "../../actuator/containerd/messages.ts";
import type { Draws } from "../actuator/cgroups/draws.ts";
import type { SimApi } from "./api.ts";
import { type MadePod, programOf } from "./pods-made.ts";
import type { PodsNode } from "./pods-node.ts";

/** A node, and everything that an event between two checks may change. */
export interface Story {
  readonly node: PodsNode;
  readonly api: SimApi;
  readonly d: Draws;
  /** All pods that were ever requested, by uid. */
  readonly made: Map<string, MadePod>;
  /** The pods that the source currently contains. */
  readonly wanted: Map<string, MadePod>;
  pods: number;
  images: number;
  isHealed: boolean;
}

/** Returns whether the event could happen. */
export type Event = (story: Story) => boolean | Promise<boolean>;

export function newStory(node: PodsNode, api: SimApi, d: Draws): Story {
  const story: Story = { node, api, d, made: new Map(), wanted: new Map(), pods: 0, images: 0, isHealed: false };
  const { runtime } = node;
  runtime.images.set("app:1", { id: "sha256:app1" });
  runtime.images.set("app:2", { id: "sha256:app2" });
  runtime.programOf = (container) => programOf(container, story.isHealed);
  return story;
}

/** Adds the sandbox and container of a pod without an owner, and those of another daemon. */
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

/** Ends all faults. */
export function heal(s: Story): void {
  const { node, api } = s;
  s.isHealed = true;
  api.reachable = true;
  node.disk.isFull = false;
  node.source.state = "whole";
  node.death = null;
  node.memory.eaters.clear();
  node.runtime.on = () => undefined;
  node.runtime.restart();
  while (push(s));
  for (const one of node.runtime.ownContainers) {
    const [what] = one.config.command ?? [];
    if (what === "crash") node.runtime.exit(one.id, 1);
  }
}

export function ask(s: Story, one: MadePod): boolean {
  s.made.set(one.uid, one);
  s.wanted.set(one.uid, one);
  return addToSource(s, one);
}
export function addToSource({ node }: Story, one: MadePod): boolean {
  node.source.pods.set(one.uid, one.object);
  return true;
}
export function withdraw(s: Story, uid: string): boolean {
  s.wanted.delete(uid);
  return s.node.source.pods.delete(uid);
}
export function anyOf({ wanted, d }: Story): MadePod | null {
  return wanted.size === 0 ? null : d.pick([...wanted.values()]);
}

/** A random image; one in five is not in the registry yet. */
export function imageOf(s: Story): string {
  return s.d.chance(5) ? `late:${++s.images}` : s.d.pick(["app:1", "app:2"]);
}
export function push({ node, images }: Story): boolean {
  for (let i = 1; i <= images; i++) {
    const name = `late:${i}`;
    if (node.runtime.registry.has(name)) continue;
    node.runtime.registry.set(name, { id: `sha256:late${i}`, takesMs: 1500 });
    return true;
  }
  return false;
}
