import type { PodsRead } from "../../actuator/core/interfaces.ts";
import { container } from "./containers.ts";
import type { Json } from "./snapshots.ts";

/** The manifest of a pod as people write it: without a uid, and with one container `c` unless its spec has others. */
export const podManifest = (name: string, { metadata, spec }: { metadata?: Json; spec?: Json } = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...metadata },
  spec: { containers: [container("c")], ...spec },
});
/** The manifest in YAML, with an image and then the text `more`. */
export const podYaml = (name: string, more = ""): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: c\n    image: busybox\n${more}`;
/** A complete and successful answer of a source of pods. */
export const podsRead = (pods: readonly unknown[] = [], more: Partial<PodsRead> = {}): PodsRead => ({
  pods,
  whole: true,
  problems: [],
  notices: [],
  ...more,
});
