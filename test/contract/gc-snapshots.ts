import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { hex32 } from "./store-rows.ts";

export const START = Date.parse("2026-11-21T10:00:00Z");
export const timeAt = (seconds: number): string => new Date(START + seconds * 1000).toISOString();
export const nanosAt = (seconds: number): string => `${START + seconds * 1000}000000`;
export const MI = 2 ** 20;
export const idOf = (name: string): string => `sha256:${Buffer.from(name.padEnd(32, "-")).toString("hex")}`;

/** A locally built image of 100 MiB, as the runtime lists it. */
export const localImage = (name: string, over: object = {}) => ({
  id: idOf(name),
  repoTags: [`localhost/${name}:1`],
  repoDigests: [],
  size: `${100 * MI}`,
  pinned: false,
  ...over,
});
/** A container of the pod `web`, as the runtime lists it. */
export const webContainer = (name: string, state: string, over: object = {}) => ({
  id: `c-${name}`,
  podSandboxId: "s-web",
  metadata: { name, attempt: 0 },
  image: { image: idOf("web") },
  imageRef: idOf("web"),
  imageId: idOf("web"),
  state,
  createdAt: nanosAt(-60),
  labels: { "io.kubernetes.pod.uid": "u-web", "io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "shop" },
  ...over,
});
export const webSandbox = {
  id: "s-web",
  metadata: { name: "web", uid: "u-web", namespace: "shop" },
  state: "SANDBOX_READY",
  createdAt: nanosAt(-70),
};

/** A node of 1000 MiB with `availableMi` available, `seconds` after the start; `web` is in use, `pause` is pinned. */
export function diskSnapshot(node: string, seconds: number, images: readonly object[], availableMi = 50) {
  const imageFs = { time: timeAt(seconds), capacityBytes: 1000 * MI, availableBytes: availableMi * MI };
  return {
    observedAt: timeAt(seconds),
    node: { metadata: { name: node } },
    kubeletConfiguration: { imageMinimumGCAge: "1m" },
    pods: [
      pod("web", {
        metadata: { namespace: "shop", uid: "u-web" },
        spec: { containers: [container("app")] },
        status: { phase: "Running" },
      }),
    ],
    stats: { node: { runtime: { imageFs } } },
    runtime: {
      images: [localImage("web"), localImage("pause", { pinned: true }), ...images],
      containers: [webContainer("app", "CONTAINER_RUNNING")],
      sandboxes: [webSandbox],
    },
  };
}

/** `count` different images, with digests that cannot be compressed. */
export const manyImages = (count: number): readonly { readonly id: string }[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `sha256:${digestOf(2 * i)}`,
    repoTags: [`registry.example/team-${i % 50}/service-${i}:v${i % 17}`],
    repoDigests: [`registry.example/team-${i % 50}/service-${i}@sha256:${digestOf(2 * i + 1)}`],
    size: `${MI + i}`,
    pinned: false,
  }));
const digestOf = (n: number): string => Array.from({ length: 8 }, (_, k) => hash32(n * 8 + k)).join("");
function hash32(n: number): string {
  let h = Math.imul(n ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return hex32(h ^ (h >>> 16));
}
