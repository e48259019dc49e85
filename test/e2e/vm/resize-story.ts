import assert from "node:assert/strict";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import { Gate } from "../gc/gate.ts";
import { startPodsServer } from "../gc/pods-server.ts";
import { podOf, SERVES } from "../pods/manifest.ts";
import type { Check } from "./checks.ts";
import type { GuestNode } from "./guest-node.ts";

const MIB = 2 ** 20;
const NAME = "sized";
const FILES = ["cpu.max", "memory.max"];

/** The pod keeps 40 MiB that cannot be reclaimed. */
const sized = (cpu: string, memory: string): object =>
  podOf(NAME, {
    uid: NAME,
    containers: [
      {
        script: `dd if=/dev/zero of=/memory/file bs=1M count=40; ${SERVES}`,
        requests: { cpu, memory },
        limits: { cpu, memory },
        volumeMounts: [{ name: "memory", mountPath: "/memory" }],
      },
    ],
    volumes: [{ name: "memory", emptyDir: { medium: "Memory" } }],
  });

/** `pod cpu.max`, in the order of the writes. */
function writes(passes: readonly PassReport[]): readonly string[] {
  const results = passes.flatMap(({ applied }) => applied?.results ?? []);
  return results.flatMap(({ step, status }) => {
    if (status !== "applied" || !("file" in step) || !FILES.includes(step.file)) return [];
    const parts = step.path.split(`/pod${NAME}`);
    return parts.length === 2 ? [`${parts[1] === "" ? "pod" : "container"} ${step.file}`] : [];
  });
}

/**
 * The checks of the resize of a running pod. The pod comes from a server, because a static pod has only the resources
 * of its manifest. Needs a node without pods.
 */
export function resizing(node: GuestNode): readonly Check[] {
  let before: PodRow | undefined;
  let set: (cpu: string, memory: string) => void = () => {};
  const id = (): string => before?.containers[0]?.id ?? "none";
  const values = (): readonly string[] =>
    [`/kubepods/pod${NAME}`, `/kubepods/pod${NAME}/${id()}`].flatMap((path) =>
      FILES.map((file) => node.read(path, file)),
    );
  const event = (reason: string): Promise<string> =>
    node.wait(reason, () => node.messages.find((line) => line.startsWith(`${NAME} ${reason}: `)));
  const forget = (): void => {
    node.messages.length = 0;
    node.passes.length = 0;
  };
  const expectSame = async (): Promise<void> => {
    const after = await node.running(NAME);
    assert.deepEqual([after.containers[0]?.id, after.containers[0]?.restarts], [id(), 0]);
  };
  return [
    {
      name: "a running pod's resources are raised: first in the pod's cgroup, then in the container's",
      run: async () => {
        const server = await startPodsServer(new Gate());
        set = (cpu, memory) => server.set([sized(cpu, memory)]);
        set("500m", "64Mi");
        await node.stopDaemon();
        await node.startDaemon({ evictionHard: { "memory.available": "1Mi" } }, server.url);
        before = await node.running(NAME);
        await node.settled(NAME);
        await node.wait("40 MiB in use", () =>
          Number(node.read(`/kubepods/pod${NAME}`, "memory.current")) >= 40 * MIB ? true : undefined,
        );
        const small = ["50000 100000", String(64 * MIB)];
        assert.deepEqual(values(), [...small, ...small]);
        forget();
        set("1500m", "96Mi");
        await event("ResizeCompleted");
        const large = ["150000 100000", String(96 * MIB)];
        assert.deepEqual(values(), [...large, ...large]);
        assert.deepEqual(writes(node.passes).toSorted(byFile), [
          "pod cpu.max",
          "container cpu.max",
          "pod memory.max",
          "container memory.max",
        ]);
        await expectSame();
      },
    },
    {
      name: "its resources are lowered: first in the container's cgroup, and memory in use only once it is free",
      run: async () => {
        forget();
        set("250m", "32Mi");
        const message = await event("ResizeError");
        assert.ok(message.includes(`attempting to set pod memory limit (${32 * MIB}) below current usage`), message);
        const large = ["150000 100000", String(96 * MIB)];
        assert.deepEqual(values(), [...large, ...large]);
        await node.exec(id(), "rm /memory/file");
        await event("ResizeCompleted");
        const small = ["25000 100000", String(32 * MIB)];
        assert.deepEqual(values(), [...small, ...small]);
        assert.deepEqual(writes(node.passes).toSorted(byFile), [
          "container cpu.max",
          "pod cpu.max",
          "container memory.max",
          "pod memory.max",
        ]);
        await expectSame();
      },
    },
  ];
}

/** Sorts by file; the writes of one file keep their order. */
const byFile = (a: string, b: string): number => FILES.indexOf(fileOf(a)) - FILES.indexOf(fileOf(b));
const fileOf = (write: string): string => write.split(" ")[1] ?? "";
