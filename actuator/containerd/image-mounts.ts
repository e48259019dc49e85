import { ok } from "../../api/model/result.ts";
import { askEach, nullIfGone } from "./at-once.ts";
import type { Connection } from "./connection.ts";
import type { Container, Mount } from "./messages.ts";
import type { Answered, RuntimeFault } from "./port.ts";

export interface ImageMounts {
  /** Container id -> its image volumes, of those that have any. */
  of(containers: readonly Container[]): Answered<ReadonlyMap<string, readonly Mount[]>>;
}

/**
 * The image volumes of containers, which only ContainerStatus tells. The mounts of a container never change, so each
 * container is asked about once in the life of this client, and none where the runtime cannot mount images.
 */
export function imageMounts(connection: Connection): ImageMounts {
  let known = new Map<string, readonly Mount[]>();
  return {
    async of(containers) {
      if (containers.length === 0) return ok(known);
      const version = await connection.call("Version", {});
      if (!version.ok) return version;
      if (!mountsImages(version.value)) return ok(new Map());
      const next = new Map<string, readonly Mount[]>();
      const asked: string[] = [];
      for (const { id } of containers) {
        const mounts = known.get(id);
        if (mounts === undefined) asked.push(id);
        else next.set(id, mounts);
      }
      const fault = await askAll(connection, asked, next);
      if (fault !== undefined) return { ok: false, error: fault };
      known = next;
      return ok(new Map([...known].filter(([, mounts]) => mounts.length > 0)));
    },
  };
}

/** Answers go into `found`; a container that is gone by now has none. */
const askAll = (
  connection: Connection,
  ids: readonly string[],
  found: Map<string, readonly Mount[]>,
): Promise<RuntimeFault | undefined> =>
  askEach(ids, async (containerId) => {
    const answer = await nullIfGone(connection.call("ContainerStatus", { containerId }));
    if (!answer.ok) return answer.error;
    if (answer.value !== null)
      found.set(
        containerId,
        (answer.value.status?.mounts ?? []).filter(({ image }) => image !== null),
      );
    return undefined;
  });

/** containerd mounts images since 2.1; any other runtime may. */
function mountsImages({ runtimeName, runtimeVersion }: { runtimeName: string; runtimeVersion: string }): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(runtimeVersion) ?? [];
  if (runtimeName !== "containerd" || major === undefined) return true;
  return Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 1);
}
