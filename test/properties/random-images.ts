import { containerFrom, disk, facts, HOUR, iso, START } from "../decide/image-gc/image-gc-kit.ts";
import type { Json } from "../kit/snapshots.ts";
import type { Draws } from "./draws.ts";

export interface DrawnImages {
  readonly images: readonly Json[];
  readonly containers: readonly Json[];
  readonly config: Json;
  readonly stats: Json;
  readonly sandboxImage: string;
  readonly facts: unknown;
  readonly ask: Json;
}
/** Only few values, so that images are often equal in one property or in all, and share layers. */
export function drawnImages(d: Draws): DrawnImages {
  const ids = Array.from({ length: d.below(12) }, (_, i) => `i${i}`);
  const handler = (): string => d.pick(["", "", "kata"]);
  const layers = d.chance(4) ? 0 : 5;
  const images = ids.map((id) => ({
    id,
    size: d.pick([0, 10, 10, 100, d.spread(1000)]),
    pinned: d.chance(6),
    spec: { runtimeHandler: handler() },
    ...(layers > 0 && {
      layers: Array.from({ length: d.below(5) }, () => d.below(layers)).map((l) => ({
        digest: `l${l}`,
        sizeBytes: l * 10,
      })),
    }),
  }));
  const containers = ids.flatMap((id, i) => {
    if (!d.chance(5)) return [];
    const mounts = d.chance(2) ? [{ image: { image: d.pick(ids) } }] : [];
    return [containerFrom(id, { id: `c${i}`, mounts, image: { image: id, runtimeHandler: handler() } })];
  });
  const age = (): number => -d.pick([0, 1000, HOUR, HOUR, 2 * HOUR, 50 * HOUR]);
  const records = images.flatMap((i): Parameters<typeof facts>[0] => {
    const handler = i.spec.runtimeHandler;
    const times = [age(), d.chance(3) ? null : age()] as const;
    return d.chance(8) ? [] : [handler === "" ? [i.id, ...times] : [i.id, ...times, handler]];
  });
  const high = d.pick([0, 50, 85, 100]);
  return {
    images,
    containers,
    config: {
      imageGCHighThresholdPercent: high,
      imageGCLowThresholdPercent: d.pick([0, high]),
      imageMinimumGCAge: d.pick(["0s", "2m", "90m"]),
      imageMaximumGCAge: d.pick(["0s", "0s", "24h"]),
      featureGates: { RuntimeClassInImageCriApi: d.chance(2) },
    },
    stats: disk(d.pick([0, 500, 950, d.below(1001)]), d.chance(20) ? 0 : 1000),
    sandboxImage: d.chance(3) ? d.pick(["i0", "i1"]) : "",
    facts: d.chance(10) ? undefined : facts(records, { beganAtMs: START - 100 * HOUR, failed: d.chance(2) }),
    ask: { operation: d.pick(["garbage-collect", "delete-unused"]) },
  };
}
export const inputOf = (n: DrawnImages): Json => ({
  observedAt: iso(START),
  pods: [],
  kubeletConfiguration: n.config,
  stats: n.stats,
  runtime: { images: n.images, containers: n.containers, sandboxImage: n.sandboxImage },
});
