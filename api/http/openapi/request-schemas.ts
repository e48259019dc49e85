import { EXPLAIN, KINDS } from "../../model/decision.ts";
import { BACK_FROM_NOW } from "../../model/duration.ts";
import { timestampMeta, VERSION_PATTERN } from "../../model/fields.ts";
import { type JsonSchema, NULL, ref, strictObject } from "../../model/json-schema.ts";
import { PARTS } from "../../model/snapshot.ts";
import { MERGED_PARTS } from "../../model/turn.ts";
import { KNOWN_VERSION_PATTERN, PROFILES } from "../../profiles/index.ts";
import { MAX_ASKS } from "../../service/node-turn/request.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import { LONGEST_ARG, LONGEST_FILE, MAX_ARGS, MAX_DROP_INS } from "../lint.ts";
import { DEFAULT_REPLAYED } from "../replay.ts";
import { MAX_DOCUMENTS } from "../why.ts";
import { ASKED } from "./ask-schemas.ts";
import { CONFIGURATION } from "./input-schemas.ts";
import { withNulls } from "./with-nulls.ts";

export const ID: JsonSchema = { type: "string", pattern: "^[0-9a-f]{32}$" };
export const TIME: JsonSchema = { type: "string", ...timestampMeta };
/** A time, or a duration back from now. */
export const TIME_OR_AGO: JsonSchema = {
  anyOf: [TIME, { type: "string", minLength: 1, pattern: BACK_FROM_NOW.source, examples: ["12h", "7d"] }],
};
const TEXT: JsonSchema = { type: "string" };
const snapshotId: JsonSchema = { ...ID, description: "one that the history holds" };
/** An object with these members at least. */
const holding = (properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  type: "object",
  required: Object.keys(properties),
  properties,
});
/** Where the members beside it do not tell one. */
const kubeletVersion = (description: string): JsonSchema => ({
  anyOf: [{ type: "string", pattern: VERSION_PATTERN, description }, NULL],
});
const asWhich = kubeletVersion(
  "the kubelet to answer as where the snapshot's node tells no version, which counts before it; absent: the newest",
);
const explain: JsonSchema = {
  type: "string",
  enum: EXPLAIN,
  default: "reasons",
  description:
    "reasons: of every value, and of what was left unset; full: the same for kinds that weigh no alternatives",
};

/** The forms of a decision's request: its snapshot comes with it, or the history holds it. `line`: the members of a batch's line beside them. */
const decisions = (asks: readonly JsonSchema[], line: Readonly<Record<string, JsonSchema>>): readonly JsonSchema[] => {
  const members = { ...line, ask: { anyOf: [NULL, ...asks] }, explain, kubeletVersion: asWhich };
  const required = Object.keys(line).filter((name) => name === "kind");
  return [
    strictObject({ ...members, snapshot: ref("NodeSnapshot"), snapshotId: NULL }, [...required, "snapshot"]),
    strictObject({ ...members, snapshot: NULL, snapshotId }, [...required, "snapshotId"]),
  ];
};
const DECISION = {
  description: "a snapshot, or the id of one; what may be asked depends on the kind",
  anyOf: decisions(
    ASKED.flatMap(({ asks }) => asks),
    {},
  ),
};
const record: JsonSchema = {
  anyOf: [{ type: "boolean", default: true, description: "false: it is answered, and nothing is recorded" }, NULL],
};
const BATCH = {
  description: "one line: the request of a decision, with its kind",
  anyOf: ASKED.flatMap(({ kinds, asks }) => decisions(asks, { kind: { type: "string", enum: kinds }, record })),
};

const entry: JsonSchema = { type: "object" };
/** Some entries of a list, each under its key. */
const listChanges = (key: string): JsonSchema => ({
  ...strictObject({
    upsert: {
      type: "array",
      items: entry,
      description: "each in the place of the one with its key, or new: then it comes last",
    },
    remove: { type: "array", items: TEXT, description: "keys of those that are gone" },
    order: {
      type: "array",
      items: TEXT,
      description: "all keys in their order, where it is another than results by itself",
    },
  }),
  description: key,
});
const ofParts = (parts: readonly string[], part: JsonSchema, description: string): JsonSchema => ({
  ...strictObject(Object.fromEntries(parts.map((name) => [name, part]))),
  description,
});
const changes: JsonSchema = {
  ...strictObject({
    set: ofParts(PARTS, {}, "parts of a NodeSnapshot that are another, each whole; null: it is gone"),
    merge: ofParts(MERGED_PARTS, entry, "merge patches (RFC 7396) of parts"),
    pods: listChanges("by uid; of a mirror pod by its annotation kubernetes.io/config.mirror"),
    containers: listChanges("of the part runtime, by id"),
    images: listChanges("of the part runtime, by id"),
  }),
  description: "what is not as it was; nothing may be named twice",
};
const turnAsks: JsonSchema = {
  type: "array",
  maxItems: MAX_ASKS,
  description: "answered in this order; without any the snapshot is only stored",
  items: {
    anyOf: ASKED.map(({ kinds, asks }) =>
      strictObject(
        {
          kind: { type: "string", enum: kinds },
          ask: { anyOf: [NULL, ...asks] },
          explain,
          kubeletVersion: asWhich,
          record,
          holds: { anyOf: [{ ...ID, description: "of the decision that the caller has kept" }, NULL] },
        },
        ["kind"],
      ),
    ),
  },
};
const TURN = {
  description: "a whole snapshot, or what changed since one that the API knows; and what is to be decided",
  anyOf: [
    strictObject(
      { snapshot: ref("SnapshotOfNode"), base: NULL, changes: NULL, decisions: { anyOf: [turnAsks, NULL] } },
      ["snapshot"],
    ),
    strictObject(
      {
        snapshot: NULL,
        base: { ...ID, description: "the snapshotId that the last turn answered" },
        changes: { anyOf: [changes, NULL] },
        decisions: { anyOf: [turnAsks, NULL] },
      },
      ["base"],
    ),
  ],
};

const kubeletConfiguration: JsonSchema = {
  ...CONFIGURATION,
  description: "in the place of the whole recorded one: a field that it leaves out has the kubelet's default",
};
const kubeletConfigurationPatch: JsonSchema = {
  ...CONFIGURATION,
  description: "changes of the recorded one, as a JSON merge patch (RFC 7396): null takes a field away",
};
/** At most one of the two configurations; without either that is not changed. `forms`: the members beside them. */
const replay = (...forms: readonly Readonly<Record<string, JsonSchema>>[]): JsonSchema => ({
  description:
    "at most one of kubeletConfiguration and kubeletConfigurationPatch, with or without another kubelet; without any of them nothing is changed",
  anyOf: forms
    .flatMap((members) => [
      strictObject({ ...members, kubeletConfiguration, kubeletConfigurationPatch: NULL }),
      strictObject({ ...members, kubeletConfiguration: NULL, kubeletConfigurationPatch }),
    ])
    .map(withNulls),
});
const otherKubelet: JsonSchema = {
  type: "string",
  pattern: KNOWN_VERSION_PATTERN,
  description:
    "decides as a kubelet of this version; absent: as the one that was recorded. Of a recorded configuration that names every field, as /configz does, defaults of its own version that are others in this one count as left out",
};
const policyVersion: JsonSchema = {
  type: "string",
  enum: PROFILES.map((profile) => profile.policyVersion),
  description: "that of one of the server's kubelet versions; or name that in kubeletVersion",
};
const REPLAY = replay({ policyVersion: NULL, kubeletVersion: otherKubelet }, { policyVersion, kubeletVersion: NULL });
/** Which page of the history. `node` has a description of its own. */
const historyPage: Readonly<Record<string, JsonSchema>> = {
  since: { ...TIME_OR_AGO, description: "decided then or later" },
  until: { ...TIME_OR_AGO, description: "decided earlier; absent: until now" },
  kind: { type: "string", enum: KINDS, description: "of this kind" },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: MAX_REPLAYED,
    default: DEFAULT_REPLAYED,
    description: "decisions of one page; a page that takes long ends earlier",
  },
  pageToken: {
    type: "string",
    description:
      "the nextPageToken of the page before, with the same node, kind, configuration and version; the times are those of the first page",
  },
};
const HISTORY_REPLAY = replay({
  kubeletVersion: otherKubelet,
  ...historyPage,
  node: { type: "string", description: "of this node; absent: of all that the token may see" },
});

/** The snapshot of a lint: all of it is checked but what is linted. */
const snapshot: JsonSchema = { ...ref("LintedSnapshot"), description: "of the node that it is for" };
const node: JsonSchema = { ...TEXT, description: "the node's latest snapshot" };
const linted: JsonSchema = {
  type: "object",
  description:
    "as a file or /configz has it, whole and unchecked: what is wrong with it is the answer. Absent: that of the snapshot, of which only the fields that decisions read are stored",
};
const kubeletArgs: JsonSchema = {
  type: "array",
  maxItems: MAX_ARGS,
  items: { type: "string", maxLength: LONGEST_ARG },
  description: "the kubelet's command line, without the program's name: its flags count before the configuration",
};
const kubeletDropIns: JsonSchema = {
  type: "array",
  maxItems: MAX_DROP_INS,
  items: strictObject(
    {
      file: { type: "string", minLength: 1, maxLength: LONGEST_FILE, description: "its name, which findings tell" },
      document: { description: "the whole file, unchecked as kubeletConfiguration is" },
    },
    ["file", "document"],
  ),
  description:
    "the files of the kubelet's --config-dir in their order, merged over kubeletConfiguration as the kubelet merges them",
};
/** A request about what a kubelet is started with: where there are drop-ins there is a configuration. */
const aboutStart = (members: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema => ({
  ...withNulls(strictObject(members, required)),
  dependentSchemas: {
    kubeletDropIns: {
      anyOf: [{ properties: { kubeletDropIns: NULL } }, holding({ kubeletConfiguration: { type: "object" } })],
    },
  },
});
const lint = (required: string, members: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  aboutStart(
    {
      kubeletConfiguration: linted,
      kubeletArgs,
      kubeletDropIns,
      kubeletVersion: asWhich,
      snapshot: NULL,
      snapshotId: NULL,
      node: NULL,
      ...members,
    },
    [required],
  );
const LINT = {
  description: "a configuration, or what holds one; at most one of snapshot, snapshotId and node",
  anyOf: [
    lint("kubeletConfiguration", { snapshot }),
    lint("kubeletArgs", { snapshot }),
    lint("snapshot", { snapshot: { allOf: [snapshot, holding({ kubeletConfiguration: { type: "object" } })] } }),
    lint("snapshotId", { snapshotId }),
    lint("node", { node }),
  ],
};

const VERSIONS = PROFILES.map(({ version }) => version).join(", ");
const upgrade = (required: readonly string[], members: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  aboutStart(
    {
      to: { type: "string", pattern: KNOWN_VERSION_PATTERN, description: `the other kubelet: one of ${VERSIONS}` },
      from: {
        type: "string",
        pattern: VERSION_PATTERN,
        description:
          "the kubelet of now where the node in the snapshot tells none; its own counts before it. The nearest that is known here answers, as the report tells",
      },
      kubeletConfiguration: linted,
      kubeletArgs,
      kubeletDropIns,
      ...historyPage,
      snapshot: NULL,
      snapshotId: NULL,
      node: NULL,
      ...members,
    },
    ["to", ...required],
  );

const UPGRADE = {
  description:
    "a configuration, what holds one, or since when the history is asked; at most one of snapshot, snapshotId and node",
  anyOf: [
    upgrade(["kubeletConfiguration", "from"], {}),
    upgrade(["kubeletArgs", "from"], {}),
    upgrade(["snapshot"], { snapshot }),
    upgrade(["snapshotId"], { snapshotId }),
    upgrade(["node"], { node }),
    ...["since", "until", "pageToken"].map((name) => upgrade([name], {})),
  ],
};

const name: JsonSchema = { type: "string", minLength: 1 };
const WHY = withNulls(
  strictObject({
    pod: { ...name, description: "NAME, NAMESPACE/NAME or uid; absent: all pods that have a story" },
    namespace: { ...name, description: "of the pod; absent: any" },
    node: { ...name, description: "of the history of this node, beside the documents" },
    documents: {
      type: "array",
      maxItems: MAX_DOCUMENTS,
      items: {},
      description:
        'each as it is, or with where it is from: {"origin": "app/cpu.stat", "value": "nr_periods 10 nr_throttled 2"}; absent: what the history holds',
    },
  }),
);

/** The bodies of requests, by name. */
export const REQUEST_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  DecisionRequest: DECISION,
  BatchRequest: BATCH,
  TurnRequest: TURN,
  ReplayRequest: REPLAY,
  HistoryReplayRequest: HISTORY_REPLAY,
  LintRequest: LINT,
  UpgradeRequest: UPGRADE,
  WhyRequest: WHY,
  SnapshotOfNode: {
    description: "of the node that the path names",
    allOf: [ref("NodeSnapshot"), holding({ node: holding({ metadata: holding({ name: TEXT }) }) })],
  },
};
