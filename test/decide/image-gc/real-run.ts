import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runtimeContainer } from "../../kit/runtime.ts";
import type { Json } from "../../kit/snapshots.ts";

interface RealRun {
  readonly kubeletConfiguration: Json;
  readonly kubeletStart: string;
  readonly at: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly images: readonly { readonly id: string; readonly repoTags: readonly string[] }[];
  readonly containers: readonly { readonly container: string; readonly pod: string; readonly imageRef: string }[];
  readonly log: {
    readonly usage: number;
    readonly amountToFree: number;
    readonly removed: readonly { readonly id: string; readonly size: number }[];
  };
  readonly left: readonly string[];
}
export const run = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../data/real-image-gc/partial.json"), "utf8"),
) as RealRun;
export const idOf = (name: string): string =>
  run.images.find((i) => i.repoTags[0] === `localhost/${name}:1`)?.id as string;

const using = (pods: readonly { pod: string; container: string; imageRef: string }[]) =>
  pods.map(({ pod, container, imageRef }) =>
    runtimeContainer(pod, {
      metadata: { name: container },
      imageRef,
      state: "CONTAINER_RUNNING",
      labels: { "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": pod },
    }),
  );
const at = (observedAt: string, images: readonly unknown[], containers: readonly unknown[]): Json => ({
  observedAt,
  pods: [],
  kubelet: { startedAt: run.kubeletStart },
  kubeletConfiguration: run.kubeletConfiguration,
  stats: {
    node: { runtime: { imageFs: { capacityBytes: run.capacityBytes, availableBytes: run.availableBytes } } },
  },
  runtime: { images, containers },
});
const userOf = (name: string) => ({ pod: name, container: "c", imageRef: idOf(name) });

/**
 * The inputs of the kubelet's passes according to the capture: at its start, after gc-d was removed, and at the pass
 * that it logged.
 */
export function realSnapshots(): readonly [Json, Json, Json] {
  const atStart = run.images.filter((i) => i.id !== idOf("gc-f"));
  const later = new Date(Date.parse(run.kubeletStart) + 60_000).toISOString();
  return [
    at(run.kubeletStart, atStart, using([...run.containers, userOf("gc-d"), userOf("gc-g")])),
    at(later, atStart, using([...run.containers, userOf("gc-g")])),
    at(run.at, run.images, using(run.containers)),
  ];
}
