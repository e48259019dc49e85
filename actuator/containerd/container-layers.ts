import { ok } from "../../api/model/result.ts";
import type { Connection } from "./connection.ts";
import { timeMs } from "./pod-parts.ts";
import type { Answered } from "./port.ts";

/** What a container wrote on top of its image, as the runtime last measured it. */
export interface LayerUsage {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  readonly measuredAtMs: number;
}

/** Container id -> its writable layer, of those that ended too. A new one is told after the runtime's next measurement: 10 s in containerd. */
export async function containerLayers(connection: Connection): Answered<ReadonlyMap<string, LayerUsage>> {
  const answer = await connection.call("ListContainerStats", {});
  if (!answer.ok) return answer;
  const layers = new Map<string, LayerUsage>();
  for (const { attributes, writableLayer } of answer.value.stats) {
    const measuredAtMs = timeMs(writableLayer?.timestamp ?? "");
    if (attributes === null || writableLayer === null || measuredAtMs === null) continue;
    layers.set(attributes.id, {
      usedBytes: Number(writableLayer.usedBytes?.value ?? 0),
      inodesUsed: Number(writableLayer.inodesUsed?.value ?? 0),
      measuredAtMs,
    });
  }
  return ok(layers);
}
