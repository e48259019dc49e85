import type { Refusal } from "../../model/decision.ts";
import { containersOf, type Pod, podNamespace } from "../../model/pod.ts";
import type { ProbesAsk } from "../../model/probes-ask.ts";
import { probesIssues } from "../../model/probes-issues.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";

/** The pod of the ask. A posted one was checked with it; one that is named is checked here. */
export function askedProbes({ pods }: Snapshot, { pod: asked, container }: ProbesAsk): Result<Pod, Refusal> {
  if (asked === null) {
    const message = "whose probes are to be run dry? post the pod, or name one of the snapshot";
    return err({ code: "needs_input", message, needs: ["ask.pod"] });
  }
  if (typeof asked !== "string") return ok(asked);
  const at = pods?.findIndex((p) => `${podNamespace(p)}/${p.metadata.name}` === asked) ?? -1;
  const pod = pods?.[at];
  if (pod === undefined) {
    return err({ code: "no_such_pod", message: `the snapshot has no pod \`${asked}\``, needs: ["pods"] });
  }
  const [issue] = probesIssues(pod, `pods[${at}]`);
  if (issue !== undefined) return err({ code: "invalid_state", message: `${issue.path}: ${issue.message}`, needs: [] });
  const names = containersOf(pod).map(({ name }) => name);
  if (container === null || names.includes(container)) return ok(pod);
  const message = `ask.container: \`${asked}\` has no container \`${container}\`; it has ${names.join(", ")}`;
  return err({ code: "invalid_state", message, needs: [] });
}
