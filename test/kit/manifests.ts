import { container } from "./containers.ts";
import type { Json } from "./snapshots.ts";

/** The manifest of a pod as people write it: without a uid, of one container `c` unless its spec has others. */
export const manifest = (name: string, { metadata, spec }: { metadata?: Json; spec?: Json } = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...metadata },
  spec: { containers: [container("c")], ...spec },
});
/** The same in YAML, with an image; `more` follows that. */
export const manifestYaml = (name: string, more = ""): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: c\n    image: busybox\n${more}`;
