import type { PodsRead } from "../../actuator/core/interfaces.ts";
import { container } from "./containers.ts";
import type { Json } from "./snapshots.ts";

/** The manifest of a pod as people write it: without a uid, of one container `c` unless its spec has others. */
export const podManifest = (name: string, { metadata, spec }: { metadata?: Json; spec?: Json } = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...metadata },
  spec: { containers: [container("c")], ...spec },
});
/** The same in YAML, with an image; `more` follows that. */
export const podYaml = (name: string, more = ""): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: c\n    image: busybox\n${more}`;
/** The answer of a source of pods that was read: these, and that is all there are. */
export const podsRead = (pods: readonly unknown[] = [], more: Partial<PodsRead> = {}): PodsRead => ({
  pods,
  whole: true,
  problems: [],
  notices: [],
  ...more,
});
