import * as z from "zod";
import { LINT_SEVERITIES } from "../../decide/lint/finding.ts";
import { KINDS } from "../../model/decision.ts";
import { type Form, placeReasonsForm, reasonForm, shortDifference } from "../../model/forms.ts";
import { DIRECTIONS } from "../../profiles/between.ts";
import { NOTE_TOPICS } from "../../profiles/note.ts";

/** The forms of an upgrade report, for the code that makes it, the API's document, and clients. */
const text = z.string();
const integer = z.number();
const patch = z.unknown().describe("a merge patch (RFC 7396) of the KubeletConfiguration; null: there is none");

/** Has the form of `ProfileNote`. */
const profileNote = z
  .strictObject({ version: text, exact: z.boolean(), why: text.nullable() })
  .describe(
    "`version`: the kubelet version whose rules made the report; `exact`: true if it is the version that was named; `why`: the reason if it is not",
  );

const where = text
  .optional()
  .describe(
    "FILE:LINE on the command line, the line number on a page; absent: the configuration was not given as a text with lines",
  );
const finding = z.strictObject({
  code: text,
  severity: z.enum(LINT_SEVERITIES).describe("refuses-start: the kubelet does not start with this configuration"),
  field: text,
  where,
  message: text,
  kubelet: z.boolean().describe("true: the message is the kubelet's own, byte for byte"),
  advice: text,
  fix: patch,
});
const startFinding = finding.extend({
  isNew: z.boolean().describe("false: the fault keeps the kubelet of `from` from starting as well"),
});

const gateState = z
  .strictObject({
    isOn: z.boolean().describe("true: the gate is on with this configuration"),
    stage: z.enum(["alpha", "beta", "stable", "deprecated"]),
    locked: z
      .boolean()
      .describe("true: the gate is locked to its default, so the configuration cannot set another value"),
  })
  .nullable()
  .describe(
    "the state of the feature gate; null: this version does not know the gate, and a kubelet whose configuration names it does not start",
  );
const GATE_CHANGES = ["value", "settability"] as const;
const gateChange = z.strictObject({
  name: text,
  from: gateState,
  to: gateState,
  changes: z
    .enum(GATE_CHANGES)
    .describe(
      "value: the gate is switched on or off; settability: its value stays, and whether the configuration can set it changes",
    ),
  named: z
    .boolean()
    .nullable()
    .describe("the value that the configuration sets; null: the configuration does not set the gate"),
  where,
  why: text,
  keep: z
    .unknown()
    .describe(
      "a merge patch (RFC 7396) that keeps the gate's present value; null: there is none, for the reason in `notKept`",
    ),
  notKept: text.nullable().describe("why no patch keeps the value; null: `keep` is a patch"),
});

const defaultChange = z.strictObject({
  field: text.describe("the path of a field that the KubeletConfiguration leaves out"),
  from: z.unknown().optional().describe("the default of the kubelet of `from`; absent: it has none"),
  to: z.unknown().optional().describe("the default of the kubelet of `to`; absent: it has none"),
});

const note = z.strictObject({
  version: text.describe("the kubelet version that introduced the change"),
  topic: z.enum(NOTE_TOPICS),
  name: text,
  what: text,
  before: text.nullable().describe("what to do before the kubelet of `to` starts; null: nothing"),
  patch,
});

const podName = text.describe("NAMESPACE/NAME");
const changedAnswer = z.strictObject({
  kind: z.enum(KINDS),
  pod: podName
    .nullable()
    .describe("NAMESPACE/NAME of the pod that the decision is about; null: the decision is about the node"),
  pods: z.array(podName).describe("the first few pods for which the decision differs"),
  podCount: integer,
  from: text.nullable().describe("the verdict of the kubelet of `from`; null: the request is refused"),
  to: text.nullable(),
  differences: z
    .array(shortDifference)
    .describe(
      "the first few differences, those with an effect on the node first; `recorded` is the value under `from`, `replayed` the value under `to`",
    ),
  differenceCount: integer,
  reasons: z
    .array(placeReasonsForm(reasonForm(text)))
    .describe("the first few reasons that only the decision under `to` has"),
  problem: text.nullable().describe("why no decision can be made under `to`; null: one was made"),
});
const decidedKind = z.strictObject({
  kind: z.enum(KINDS),
  asked: integer.describe("the number of decisions made: one, or one for each of the first 128 pods"),
  changed: integer,
  kernelDefaults: integer.describe(
    "the number of decisions, not counted in `changed`, that differ only in cgroup files to which one version writes the kernel's default and the other writes nothing",
  ),
  undecided: text.nullable().describe("why the kind was not decided; null: it was decided"),
});

const step = z.strictObject({ what: text, why: text, patch });

const OUTCOMES = ["refuses-start", "changes", "same"] as const;

export const upgradeReport = z.strictObject({
  node: text.nullable().describe("the node's name; null: the report is not about a known node"),
  from: profileNote,
  to: profileNote,
  direction: z.enum(DIRECTIONS),
  outcome: z
    .enum(OUTCOMES)
    .describe(
      "refuses-start: the kubelet of `to` does not start with the configuration; changes: a finding, the value of a gate, a default, a static pod or a decision differs; same: none of them differs",
    ),
  configured: z.boolean().describe("false: no KubeletConfiguration is known, and the kubelet's defaults are assumed"),
  assumed: z
    .array(text)
    .describe(
      "paths of fields that count as left out: the configuration names every field, and these have the default of `from`",
    ),
  starts: z
    .array(startFinding)
    .describe("the faults that keep the kubelet of `to` from starting, then other findings that only `to` has"),
  startsNow: z
    .array(finding)
    .describe(
      "settings with which the kubelet of `from` does not start, or which it ignores, and which the kubelet of `to` accepts",
    ),
  gates: z.array(gateChange).describe("the changes of feature gates that a kubelet reads"),
  defaults: z.array(defaultChange),
  staticPods: z
    .array(podName)
    .describe("NAMESPACE/NAME of static pods that the kubelet of `to` restarts, because their uid changes"),
  decisions: z
    .strictObject({ kinds: z.array(decidedKind), changed: z.array(changedAnswer) })
    .nullable()
    .describe("the decisions on the snapshot under `from` and under `to`; null: there is no snapshot"),
  notes: z.array(note).describe("changes of flags, files, events and other behaviour, in the order of the versions"),
  steps: z.array(step).describe("what to do before the upgrade, in order"),
});
export type UpgradeReport = Form<typeof upgradeReport>;
export type GateChange = UpgradeReport["gates"][number];
export type NowFinding = UpgradeReport["startsNow"][number];
export type DefaultChange = UpgradeReport["defaults"][number];
export type ReportedNote = UpgradeReport["notes"][number];
export type SnapshotDecisions = NonNullable<UpgradeReport["decisions"]>;
export type ChangedAnswer = SnapshotDecisions["changed"][number];
export type Step = UpgradeReport["steps"][number];
