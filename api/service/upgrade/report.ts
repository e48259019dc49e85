import * as z from "zod";
import { LINT_SEVERITIES } from "../../decide/lint/finding.ts";
import { KINDS } from "../../model/decision.ts";
import { type Form, placeReasonsForm, reasonForm, shortDifference } from "../../model/forms.ts";
import { DIRECTIONS } from "../../profiles/between.ts";
import { NOTE_TOPICS } from "../../profiles/note.ts";

/** The forms of an upgrade report, for the code that makes it, the API's document, and clients. */
const text = z.string();
const integer = z.number();
const patch = z.unknown().describe("a merge patch (RFC 7396) of the configuration; null: there is none");

/** Has the form of `ProfileNote`. */
const profileNote = z
  .strictObject({ version: text, exact: z.boolean(), why: text.nullable() })
  .describe("the kubelet version whose rules answered; exact: it is the one that was named, else `why` has the reason");

const where = text
  .optional()
  .describe("FILE:LINE on the command line, the line on a page; absent: it came without a text that has lines");
const finding = z.strictObject({
  code: text,
  severity: z.enum(LINT_SEVERITIES).describe("refuses-start: the kubelet does not start with it"),
  field: text,
  where,
  message: text,
  kubelet: z.boolean().describe("the message is the kubelet's own, byte for byte"),
  advice: text,
  fix: patch,
});
const startFinding = finding.extend({
  isNew: z.boolean().describe("false: it keeps the kubelet of `from` from starting as well"),
});

const gateState = z
  .strictObject({
    isOn: z.boolean().describe("for this configuration"),
    stage: z.enum(["alpha", "beta", "stable", "deprecated"]),
    locked: z.boolean().describe("it cannot be set to anything else"),
  })
  .nullable()
  .describe("null: this version does not know it; naming it stops the kubelet");
const GATE_CHANGES = ["value", "settability"] as const;
const gateChange = z.strictObject({
  name: text,
  from: gateState,
  to: gateState,
  changes: z.enum(GATE_CHANGES).describe("value: it is on and was off, or the other way round"),
  named: z.boolean().nullable().describe("as the configuration sets it; null: it does not"),
  where,
  why: text,
  keep: z.unknown().describe("a merge patch with which it stays as it is; null: there is none, see `notKept`"),
  notKept: text.nullable().describe("why there is no such patch; null: there is one"),
});

const defaultChange = z.strictObject({
  field: text.describe("a path in the KubeletConfiguration, which leaves it out"),
  from: z.unknown().optional().describe("absent: it had none"),
  to: z.unknown().optional().describe("absent: it has none"),
});

const note = z.strictObject({
  version: text.describe("that began it"),
  topic: z.enum(NOTE_TOPICS),
  name: text,
  what: text,
  before: text.nullable().describe("what to do before the other kubelet starts; null: nothing"),
  patch,
});

const podName = text.describe("NAMESPACE/NAME");
const changedAnswer = z.strictObject({
  kind: z.enum(KINDS),
  pod: podName.nullable().describe("null: it is about the node"),
  pods: z.array(podName).describe("the first few whose decisions differ"),
  podCount: integer,
  from: text.nullable().describe("the verdict; null: it is refused"),
  to: text.nullable(),
  differences: z
    .array(shortDifference)
    .describe("the first few, with an effect before others: `recorded` is under `from`, `replayed` under `to`"),
  differenceCount: integer,
  reasons: z.array(placeReasonsForm(reasonForm(text))).describe("the first few that only `to` has"),
  problem: text.nullable().describe("why `to` refuses it"),
});
const decidedKind = z.strictObject({
  kind: z.enum(KINDS),
  asked: integer.describe("how often: once, or once for each of the first 128 pods"),
  changed: integer,
  kernelDefaults: integer.describe(
    "not in `changed`: one version writes what the kernel has by itself, and nothing else differs",
  ),
  undecided: text.nullable().describe("why nothing is said of it; null: it was decided"),
});

const step = z.strictObject({ what: text, why: text, patch });

const OUTCOMES = ["refuses-start", "changes", "same"] as const;

export const upgradeReport = z.strictObject({
  node: text.nullable().describe("null: of no node that is known"),
  from: profileNote,
  to: profileNote,
  direction: z.enum(DIRECTIONS),
  outcome: z.enum(OUTCOMES).describe("refuses-start: the kubelet of `to` does not start with the configuration"),
  configured: z.boolean().describe("false: no configuration is known, and the kubelet's defaults are assumed"),
  assumed: z
    .array(text)
    .describe("fields that hold a default of `from` in a configuration that names all fields: they count as left out"),
  starts: z
    .array(startFinding)
    .describe("what keeps the kubelet of `to` from starting, then what else is found under `to` only"),
  startsNow: z
    .array(finding)
    .describe("what the kubelet of `from` does not start with, or leaves out, and that of `to` takes"),
  gates: z.array(gateChange).describe("those that a kubelet reads"),
  defaults: z.array(defaultChange),
  staticPods: z.array(podName).describe("they get another uid: they are ended and started again"),
  decisions: z
    .strictObject({ kinds: z.array(decidedKind), changed: z.array(changedAnswer) })
    .nullable()
    .describe("of the snapshot, under `from` and under `to`; null: there is none"),
  notes: z.array(note).describe("flags, files, events and the like, in the order of the versions"),
  steps: z.array(step).describe("what to do before, in order"),
});
export type UpgradeReport = Form<typeof upgradeReport>;
export type GateChange = UpgradeReport["gates"][number];
export type NowFinding = UpgradeReport["startsNow"][number];
export type DefaultChange = UpgradeReport["defaults"][number];
export type ReportedNote = UpgradeReport["notes"][number];
export type SnapshotDecisions = NonNullable<UpgradeReport["decisions"]>;
export type ChangedAnswer = SnapshotDecisions["changed"][number];
export type Step = UpgradeReport["steps"][number];
