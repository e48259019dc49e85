import { managedNode } from "../../api/decide/managers/node.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { sourceOf } from "./node-source.ts";
import type { PodResourcesSource } from "./source.ts";

export interface LiveNode {
  /** Another one whenever pods, state files, devices or the machine may have changed. */
  readonly version: () => string | number;
  /**
   * As it would be posted to a decision, of this moment. The error is a sentence: why it is not known. Asked for only when
   * somebody asks, and `version` is another than when it was told last.
   */
  readonly snapshot: () => Result<unknown, string>;
}

/**
 * The `source` of `servePodResources` for a node that lives: the same one, with its answers made and their bytes, while
 * its version is the same. Errors are sentences: the node is not known, or no kubelet would start on it.
 */
export function liveSource({ version, snapshot }: LiveNode): () => Result<PodResourcesSource, string> {
  let known: { readonly version: string | number; readonly source: Result<PodResourcesSource, string> } | undefined;
  return () => {
    // looked at first: what changes while the snapshot is made is seen by the next call
    const now = version();
    if (known?.version === now) return known.source;
    const posted = snapshot();
    if (!posted.ok) return posted;
    known = { version: now, source: sourceIn(posted.value) };
    return known.source;
  };
}

function sourceIn(posted: unknown): Result<PodResourcesSource, string> {
  const decoded = decodeSnapshot(posted);
  if (!decoded.ok) return err(`what is known of the node cannot be used: ${firstOf(decoded.error)}`);
  const node = managedNode(decoded.value, []);
  if (!node.ok) return err(`who holds what on the node is not known: ${node.error.message}`);
  if (!node.value.ok) return err(`a kubelet would not start on this node: ${node.value.error.join("; ")}`);
  return ok(sourceOf(node.value.value));
}

const firstOf = (issues: readonly { readonly path: string; readonly message: string }[]): string => {
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return issues.slice(0, 1).map(({ path, message }) => `${path}: ${message}${more}`)[0] ?? "";
};
