import { readFileSync } from "node:fs";
import { pod } from "../kit/pods.ts";

const STORY = new URL("../data/real-devices/story.json", import.meta.url);
interface Step {
  readonly name: string;
  readonly after: {
    readonly at: string;
    readonly checkpoint: object;
    readonly pods: readonly { readonly name: string; readonly uid: string; readonly phase: string }[];
  };
}

/** A step of the captured device plugin run as a snapshot: the pods of that moment and the kubelet's checkpoint. */
export function storyStep(name: string) {
  const steps = JSON.parse(readFileSync(STORY, "utf8")) as readonly Step[];
  const after = steps.find((step) => step.name === name)?.after;
  if (after === undefined) throw new Error(`the story has no step ${name}`);
  const pods = after.pods.map((one) => pod(one.name, { metadata: { uid: one.uid }, status: { phase: one.phase } }));
  return {
    observedAt: after.at,
    pods,
    assignments: { kubelet_internal_checkpoint: JSON.stringify(after.checkpoint) },
  };
}
