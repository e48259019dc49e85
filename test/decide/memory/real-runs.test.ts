import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { evictionReservation, reservedOf } from "../../../api/decide/allocatable/reservation.ts";
import type { Block, MemoryState } from "../../../api/decide/memory/machine-memory.ts";
import { memoryManager } from "../../../api/decide/memory/manager.ts";
import { memoryReservation } from "../../../api/decide/memory/reserved-memory.ts";
import { type MemoryStart, memoryStateFile, startMemory } from "../../../api/decide/memory/start.ts";
import { ANY_NODE } from "../../../api/decide/topology/hint.ts";
import { resourceList } from "../../../api/model/fields.ts";
import { containersOf, type Pod, podUid } from "../../../api/model/pod.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { container } from "../../kit/containers.ts";
import { decodedPod } from "../../kit/pods.ts";
import { captured, realSnapshot } from "../../kit/real-node.ts";
import { decoded, type Json } from "../../kit/snapshots.ts";
import { add, podNamed } from "./setup.ts";

type Entries = Record<string, Record<string, Block[]>>;
interface Run {
  readonly name: string;
  readonly pod: unknown;
  /** Why the pod was refused: no CPU was left for its second container. */
  readonly message: string | null;
  readonly before: Entries;
  readonly afterStart: Entries;
  readonly afterDelete: Entries;
  /** The cpuset.mems of each running container, by pod/container. */
  readonly cpusetMems: Record<string, string>;
}
const DATA = join(import.meta.dirname, "..", "..", "data", "memory-manager", "real-runs.json");
const runs = JSON.parse(readFileSync(DATA, "utf8")) as readonly Run[];

/** A kubelet 1.36.3 on one NUMA node whose meminfo reports less memory than the machine has. */
const NODE = { id: 0, memoryBytes: 16_871_804_928, hugepages: { "1Gi": 0, "2Mi": 0 } };
const snapshot = decoded(realSnapshot());
const { kubeletConfiguration: config } = effectiveSnapshot(snapshot);
function setting(file: string | undefined): MemoryStart {
  const capacity = new Map(Object.entries(snapshot.node?.status?.capacity ?? {}));
  const [reserved, eviction] = [reservedOf(config), evictionReservation(config, capacity)];
  if (!reserved.ok || !eviction.ok) throw new Error("its reserves can be read");
  return {
    policy: config.memoryManagerPolicy,
    numaNodes: [NODE],
    reservation: memoryReservation(capacity, reserved.value, eviction.value),
    reservedMemory: config.reservedMemory,
    profile: config.profile,
    podLevel: false,
    file,
  };
}
function start(file?: string) {
  const started = startMemory(setting(file));
  if (!started.ok) throw new Error(started.error.message);
  return { ...started.value, podLevel: false, behaviour: config.profile.behaviour };
}
const entriesOf = ({ entries }: MemoryState): Entries =>
  Object.fromEntries([...entries].map(([uid, list]) => [uid, Object.fromEntries(list) as Record<string, Block[]>]));

describe("the memory manager of the captured node", () => {
  const file = readFileSync(join(import.meta.dirname, "..", "..", "data", "real-node", "memory_manager_state"), "utf8");
  test("starts with its own state file and rewrites it byte for byte", () => {
    expect(memoryStateFile("Static", start(file).state, setting(file))).toBe(file);
  });
  test("would refuse to start if one MiB more were reserved", () => {
    const reservation = new Map(Object.entries(resourceList.parse({ memory: "1525Mi" })));
    const refused = startMemory({ ...setting(file), reservation });
    expect([...setting(file).reservation.values()].map((q) => q.text)).toEqual(["1524Mi"]);
    expect(refused).toMatchObject({
      error: {
        message:
          'the total amount "1524Mi" of type "memory" is not equal to the value "1525Mi" determined by Node Allocatable feature',
      },
    });
  });
  test("reaches the same state file when its pods are admitted one by one", () => {
    const manager = memoryManager(start());
    for (const pod of captured("pods.json").items.map((p: unknown) => decodedPod(p)) as Pod[]) {
      expect(add(manager, pod)).toBeUndefined();
    }
    expect(memoryStateFile("Static", manager.state, setting(file))).toBe(file);
  });
});

describe("memory assignments of pods captured on a real node", () => {
  test.each(runs)(
    "$name: the same entries, refusal and cpuset.mems",
    ({ pod: posted, message, before, afterStart, afterDelete, cpusetMems }) => {
      const pod = decodedPod(posted);
      const held = new Map(Object.entries(before).map(([uid, list]) => [uid, new Map(Object.entries(list))]));
      const manager = memoryManager(start());
      // restores the state before, from its entries
      for (const [uid, list] of held) for (const [name, [block]] of list) add(manager, guaranteed(uid, name, block));
      expect(entriesOf(manager.state)).toEqual(before);
      // entries of the removed pod before it are released at the admission of the next pod, and not earlier
      const stays = Object.keys(before).filter((uid) => uid in afterStart);
      manager.removeStale([...stays.map((uid) => guaranteedOf(uid, before)), pod]);
      const turns = message === null ? containersOf(pod) : containersOf(pod).slice(0, 1);
      for (const container of turns) expect(manager.allocate(pod, container, ANY_NODE).ok).toBe(true);
      expect(entriesOf(manager.state)).toEqual(afterStart);
      expect(entriesOf(manager.state)).toEqual(afterDelete);
      for (const { name } of turns) {
        const mems = manager.numaNodesOf(podUid(pod) as string, name);
        const running = cpusetMems[`${pod.metadata.name}/${name}`];
        if (mems !== undefined && running !== undefined) expect(mems.join()).toBe(running);
      }
    },
  );
});

const holding = (name: string, block: Block | undefined): Json => {
  const asked = { cpu: "1", memory: String(block?.size) };
  return container(name, asked, asked);
};
const guaranteed = (uid: string, name: string, block: Block | undefined): Pod => podNamed(uid, [holding(name, block)]);
const guaranteedOf = (uid: string, entries: Entries): Pod =>
  podNamed(
    uid,
    Object.entries(entries[uid] ?? {}).map(([name, [block]]) => holding(name, block)),
  );
