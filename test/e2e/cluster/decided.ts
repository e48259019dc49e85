import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../cli/run.ts";
import type { NodeParts } from "./node.ts";
import type { SeenPod } from "./scenes.ts";

/** The answer of `nodewise decide KIND` as JSON, about a node's earlier state, given in files in kubectl's format. */
export async function decided<T>(
  kind: string,
  parts: NodeParts,
  pod?: SeenPod | string,
  ...more: readonly string[]
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "nodewise-decided-"));
  try {
    const file = (name: string, content: object): string => {
      writeFileSync(join(dir, name), JSON.stringify(content));
      return join(dir, name);
    };
    // the pod as created, without its status
    const given = (one: SeenPod | string): string =>
      typeof one === "string" ? one : file("pod.json", { metadata: one.metadata, spec: one.spec });
    const asked = pod === undefined ? [] : ["--pod", given(pod)];
    const args = [
      ...["--node", file("node.json", parts.node), "--pods", file("pods.json", parts.pods)],
      ...["--config", file("configz.json", parts.configz), "--stats", file("stats.json", parts.stats)],
    ];
    const ran = await run(["decide", kind, ...args, ...asked, ...more, "-o", "json"]);
    if (ran.stdout === "") throw new Error(`nodewise decide ${kind}: ${ran.stderr}`);
    return (JSON.parse(ran.stdout) as { readonly decision: T }).decision;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
