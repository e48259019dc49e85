import type { ImageRemoval } from "../../api/model/image-gc.ts";
import type { Runtime } from "../containerd/port.ts";
import { AS_PLANNED, faulty, GONE, type Guarded, surprise } from "./guarded.ts";

/** The image is still there under its id, not pinned, and no container of any state holds it. */
export async function guardImage({ id, runtimeHandler, names }: ImageRemoval, runtime: Runtime): Promise<Guarded> {
  const now = await runtime.imageNow(id, runtimeHandler);
  if (!now.ok) return faulty(now.error);
  if (now.value === null) return surprise(GONE);
  if (now.value.id !== id) return surprise(`its id is ${now.value.id} now`);
  if (now.value.pinned) return surprise("it is pinned now");
  const used = await runtime.imagesInUse();
  if (!used.ok) return faulty(used.error);
  const own = new Set([id, ...names]);
  for (const [container, images] of used.value)
    if (images.some((image) => own.has(image))) return surprise(`container ${container} uses it now`);
  return AS_PLANNED;
}
