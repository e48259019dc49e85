import * as z from "zod";
import { type JsonSchema, NULL, ref } from "../../base/json-schema.ts";
import { type FormMembers, oneOfForms, optional } from "../../model/fields.ts";
import { decisionForm, lineForm } from "../../service/decision-request.ts";
import { askForm, MAX_ASKS, turnForm } from "../../service/node-turn/request.ts";
import { lintForm, nodeMembers } from "../lint.ts";
import { historyReplayForm, replayForm } from "../replay.ts";
import { upgradeForm } from "../upgrade.ts";
import { whyForm } from "../why.ts";
import { ASKED } from "./ask-schemas.ts";
import { inputSchema, type SchemaToMake } from "./input-schemas.ts";

/** An object with these members at least. */
const holding = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: "object",
  required: Object.keys(properties),
  properties,
});
const askOf = (asks: readonly JsonSchema[]) => ({
  ask: optional(asks.length === 0 ? z.null() : z.unknown().meta({ anyOf: asks })),
});
/** One form per group of kinds with the same ask. */
const ofKinds = (form: z.ZodObject): readonly z.ZodObject[] =>
  ASKED.map(({ kinds, asks }) => form.extend({ kind: z.enum(kinds), ...askOf(asks) }));

/** A decision's snapshot comes with its request, or the history holds it. */
const withSnapshot = (form: z.ZodObject) =>
  oneOfForms(form, [
    { needs: ["snapshot"], lacks: ["snapshotId"] },
    { needs: ["snapshotId"], lacks: ["snapshot"] },
  ]);
const decision = () =>
  z
    .union(withSnapshot(decisionForm.extend(askOf(ASKED.flatMap(({ asks }) => asks)))))
    .describe("a snapshot or the id of a stored one; the form of `ask` depends on the kind");
const batch = () =>
  z.union(ofKinds(lineForm).flatMap(withSnapshot)).describe("one line: the body of a decision request, with its kind");
const turnAsks = () =>
  optional(z.array(z.union(ofKinds(askForm))).max(MAX_ASKS)).meta(turnForm.shape.decisions.meta() ?? {});
const turn = () =>
  z
    .union(
      oneOfForms(turnForm.extend({ decisions: turnAsks() }), [
        { needs: ["snapshot"], lacks: ["base", "changes"] },
        { needs: ["base"], lacks: ["snapshot"] },
      ]),
    )
    .describe("a whole snapshot, or the changes since a snapshot that the API has; and the requested decisions");

const CONFIGURATIONS = ["kubeletConfigurationPatch", "kubeletConfiguration"];
/** A replay without one or another of these lists of members. */
const replayWithout = (form: z.ZodObject, lists: readonly (readonly string[])[]) =>
  z
    .union(
      oneOfForms(
        form,
        lists.map((lacks) => ({ needs: [], lacks })),
      ),
    )
    .describe(
      "at most one of kubeletConfiguration and kubeletConfigurationPatch, with or without another kubelet version; without any of them the replay changes nothing",
    );
const historyReplay = () =>
  replayWithout(
    historyReplayForm,
    CONFIGURATIONS.map((one) => [one]),
  );
const replay = () =>
  replayWithout(
    replayForm,
    ["policyVersion", "kubeletVersion"].flatMap((version) => CONFIGURATIONS.map((one) => [version, one])),
  );

const SOURCES = Object.keys(nodeMembers);
/** With that source of a node, or none. */
const from = (source: string | null, ...needs: readonly string[]): FormMembers => ({
  needs,
  lacks: SOURCES.filter((name) => name !== source),
});
/** Drop-ins require a configuration. */
const dependentSchemas = {
  kubeletDropIns: {
    anyOf: [{ properties: { kubeletDropIns: NULL } }, holding({ kubeletConfiguration: { type: "object" } })],
  },
};
const configured = z.unknown().meta({
  allOf: [ref("LintedSnapshot"), holding({ kubeletConfiguration: { type: "object" } })],
  description: "the snapshot of the node that the configuration is for",
});
const lint = () =>
  z
    .union([
      ...oneOfForms(lintForm, [from("snapshot", "kubeletConfiguration"), from("snapshot", "kubeletArgs")]),
      ...oneOfForms(lintForm.extend({ snapshot: configured }), [from("snapshot", "snapshot")]),
      ...oneOfForms(lintForm, [from("snapshotId", "snapshotId"), from("node", "node")]),
    ])
    .meta({
      description:
        "a configuration, or a snapshot or a node that has one; at most one of snapshot, snapshotId and node",
      dependentSchemas,
    });
const upgrade = () =>
  z
    .union(
      oneOfForms(upgradeForm, [
        from(null, "kubeletConfiguration", "from"),
        from(null, "kubeletArgs", "from"),
        ...SOURCES.map((source) => from(source, source)),
        ...["since", "until", "pageToken"].map((name) => from(null, name)),
      ]),
    )
    .meta({
      description:
        "a configuration, a snapshot or a node that has one, or the time range of the history to decide again; at most one of snapshot, snapshotId and node",
      dependentSchemas,
    });

/** The bodies of requests, by name. */
export const requestSchemas = (): readonly SchemaToMake[] => [
  ...Object.entries({
    DecisionRequest: decision,
    BatchRequest: batch,
    TurnRequest: turn,
    ReplayRequest: replay,
    HistoryReplayRequest: historyReplay,
    LintRequest: lint,
    UpgradeRequest: upgrade,
    WhyRequest: () => whyForm,
  }).map(([name, form]): SchemaToMake => [name, () => inputSchema(form())]),
  [
    "SnapshotOfNode",
    () => ({
      description: "a snapshot of the node that the path names",
      allOf: [ref("NodeSnapshot"), holding({ node: holding({ metadata: holding({ name: { type: "string" } }) }) })],
    }),
  ],
];
