import { MOST_TOUCHED } from "../routes/lint-touched.ts";
import { LINT } from "./examples.ts";
import { type JsonSchema, ref } from "./input-schemas.ts";
import { BODY, json, type Operation } from "./operation.ts";

const REQUEST: JsonSchema = {
  type: "object",
  description: "at most one of snapshot, snapshotId and node",
  additionalProperties: false,
  properties: {
    kubeletConfiguration: {
      type: "object",
      description:
        "as a file or /configz has it, whole and unchecked: what is wrong with it is the answer. Absent: that of the snapshot, of which only the fields that decisions read are stored",
    },
    snapshot: { ...ref("NodeSnapshot"), description: "of the node that it is for" },
    snapshotId: { type: "string", pattern: "^[0-9a-f]{32}$", description: "one that the history holds" },
    node: { type: "string", description: "the node's latest snapshot" },
  },
};

export const LINT_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/lint": {
    tag: "decide",
    summary: "What is wrong with a KubeletConfiguration, or likely to be",
    description: `What keeps the kubelet from starting, in its own words; defaults that go because a field was set; settings that fight, or do nothing. With a snapshot the node's sizes, machine and state files are looked at too. \`touched\` tells how many of the node's newest ${MOST_TOUCHED} decisions (of all nodes without one) each finding touched; fewer were tried where that takes long. Nothing is recorded.`,
    body: json(REQUEST, LINT),
    answers: { 200: "LintAnswer" },
    problems: [...BODY, "unknown_node", "unknown_snapshot"],
  },
};
