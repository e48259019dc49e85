import { decideImageGc } from "../../api/decide/kinds/image-gc.ts";
import type { ImageGcAsk, ImageGcFacts } from "../../api/model/image-gc.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { runtimeContainer } from "../kit/runtime.ts";
import { decoded, many } from "../kit/snapshots.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}
const IMAGES = 5000;
const CONTAINERS = 10_000;
const NOW = Date.parse("2026-01-31T12:00:00Z");
const number = (i: number, below: number): number => (i * 2_654_435_761) % below;
const imageId = (i: number): string => `sha256:${i.toString(16).padStart(64, "0")}`;

/** A full disk: running and dead containers use a tenth of the images, and all images share layers. */
function fullDisk(layersEach: number): Snapshot {
  return decoded({
    observedAt: new Date(NOW).toISOString(),
    pods: [],
    stats: { node: { runtime: { imageFs: { capacityBytes: 2 ** 42, availableBytes: 2 ** 36 } } } },
    runtime: {
      sandboxImage: "registry.k8s.io/pause:3.10",
      images: Array.from({ length: IMAGES }, (_, i) => ({
        id: imageId(i),
        repoTags: [`registry.example.com/team/app-${i}:v1`],
        repoDigests: [`registry.example.com/team/app-${i}@${imageId(IMAGES + i)}`],
        size: String(number(i, 2 ** 30)),
        layers: Array.from({ length: layersEach }, (_, l) => ({
          digest: imageId(number(i * 8 + l, 9973)),
          sizeBytes: number(l, 2 ** 27),
        })),
      })),
      containers: many(CONTAINERS, (i) =>
        runtimeContainer(`c${i}`, {
          podSandboxId: `s${i}`,
          metadata: { name: "app", attempt: i % 3 },
          image: { image: imageId(number(i, IMAGES / 10) * 10) },
          imageRef: imageId(number(i, IMAGES / 10) * 10),
          state: i % 20 === 0 ? "CONTAINER_RUNNING" : "CONTAINER_EXITED",
          createdAt: "1767225600000000000",
          labels: { "io.kubernetes.pod.namespace": "team", "io.kubernetes.pod.name": `app-${i}` },
        }),
      ),
    },
  });
}
/**
 * The number of an image's layers. Each layer id has 71 characters; reading the ids costs half as much as everything
 * else.
 */
const LAYERS = 8;
const withLayers = fullDisk(LAYERS);
const withoutLayers = fullDisk(0);
/** First detected a day ago, and last used at different times. */
const before: ImageGcFacts = {
  atMs: NOW - 300_000,
  beganAtMs: NOW - 86_400_000,
  failed: false,
  records: Array.from({ length: IMAGES }, (_, i) => [
    imageId(i),
    NOW - 86_400_000,
    NOW - 300_000 - number(i, 86_000_000),
  ]),
  removed: [],
};

function gcCase(name: string, snapshot: Snapshot, more: Partial<ImageGcAsk>, explain: "off" | "reasons"): BenchCase {
  const ask: ImageGcAsk = {
    operation: "garbage-collect",
    done: null,
    fileSystem: null,
    afterContainerGc: false,
    ...more,
  };
  return {
    name: `${IMAGES} images, ${CONTAINERS} containers: ${name}`,
    run: () => {
      const answer = decideImageGc({
        snapshot: effectiveSnapshot(snapshot),
        facts: { "image-gc": before },
        ask,
        explain,
      });
      if (!answer.ok || answer.value.decision.remove.length === 0) throw new Error("nothing goes");
    },
  };
}

/** The input is decoded before the measurement. */
export const IMAGE_GC_CASES: readonly BenchCase[] = [
  gcCase("collect", withoutLayers, {}, "reasons"),
  gcCase("collect, no reasons", withoutLayers, {}, "off"),
  gcCase("delete unused", withoutLayers, { operation: "delete-unused" }, "reasons"),
  gcCase(`collect, ${LAYERS} layers an image`, withLayers, {}, "reasons"),
];
