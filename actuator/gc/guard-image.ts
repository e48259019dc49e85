import { indexed } from "../../api/decide/image-gc/image-names.ts";
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
  const own = new Set([id, ...names, ...now.value.names].flatMap(meanings));
  for (const [container, images] of used.value) {
    if (images.some((image) => meanings(image).some((one) => own.has(one))))
      return surprise(`container ${container} uses it now`);
  }
  return AS_PLANNED;
}

/** An id may lack its `sha256:`, a name its registry or tag; a digest means the same in every repository. */
const meanings = (reference: string): readonly string[] => [reference.replace(/^sha256:/, ""), indexed(reference)];
