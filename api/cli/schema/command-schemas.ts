import * as z from "zod";
import { STEP_STATUSES } from "../../../actuator/apply/steps.ts";
import { DRIFT_CAUSES } from "../../../actuator/plan/drift.ts";
import { deviceRow, nodeStatus, podRow } from "../../../actuator/status/decode-status.ts";
import { probeRow } from "../../../actuator/status/probe-row.ts";
import { HANDLERS } from "../../decide/probes/plan.ts";
import { removal, removalSummary } from "../../http/openapi/list-answers.ts";
import { KINDS, VERDICTS } from "../../model/decision.ts";
import { specOf } from "../../model/kinds.ts";
import { SCOPES } from "../../ports.ts";

const text = z.string();
const count = z.int().nonnegative();
const texts = z.array(text);

const ofStatus = { at: text, nodeName: text };
const pod = z.looseObject({ namespace: text, name: text, uid: text });
const historyForm = z.strictObject({ stateDir: text, entries: z.array(z.looseObject({})).describe("newest first") });
const token = { id: text, name: text, scopes: z.array(z.enum(SCOPES)), node: text.nullable() };
const tokenTimes = { createdAt: text, revokedAt: text.nullable() };
const perHandler = Object.fromEntries(HANDLERS.map((handler) => [handler, z.number()]));
const sandbox = z.strictObject({ id: text, uid: text, createdAt: text, ready: z.boolean(), running: count });
const problems = z.array(z.looseObject({ from: text, message: text }));
const answered = { decisionId: text.nullable(), decidedBy: z.enum(["api", "here"]).nullable() };
const gcRemoval = z.strictObject({
  ...{ kind: z.enum(["container-gc", "image-gc"]), target: text, id: text, name: text, bytes: count.nullable() },
  ...{ why: text, end: z.enum(["removed", "failed", "stopped"]), message: text.optional() },
});
const step = z.looseObject({ op: z.enum(["mkdir", "write", "rmdir"]), path: text, why: text });
const stepResult = z.strictObject({
  ...{ step, status: z.enum(STEP_STATUSES), code: text.nullable(), errno: text.nullable() },
  ...{ before: text.nullable(), readBack: text.nullable(), message: text },
});
const drift = { path: text, file: text, actual: text, wanted: text, written: text.nullable(), message: text };
/** A line of what the actuator prints. */
const actuatorLine = z.union([
  z
    .strictObject({
      ...{ at: text, snapshot: z.unknown().describe("as it was asked about; null: nothing was") },
      ...{ allocatable: specOf("allocatable").decision.nullable(), cgroups: specOf("cgroups").decision.nullable() },
      ...{ ...answered, needs: texts, drift: z.array(z.strictObject({ ...drift, cause: z.enum(DRIFT_CAUSES) })) },
      differs: z
        .array(
          z.strictObject({
            ...{ path: text, file: text, actual: text.nullable(), cause: z.enum(DRIFT_CAUSES).nullable() },
          }),
        )
        .nullable(),
      skipped: z.array(z.strictObject({ path: text, file: text.nullable(), code: text, message: text })),
      applied: z
        .strictObject({
          ...{ dryRun: z.boolean(), results: z.array(stepResult), complete: z.boolean() },
          journalError: z.unknown(),
        })
        .nullable(),
      ...{ problems, notices: problems },
    })
    .describe("a pass over the cgroups"),
  z.strictObject({
    collection: z.looseObject({ at: text, reclaim: z.unknown(), collections: z.array(z.looseObject({})), problems }),
  }),
  z.strictObject({ removal: gcRemoval }),
  z.strictObject({
    event: z.looseObject({ at: text, type: text, reason: text, message: text, pod, container: text.nullable() }),
  }),
  z.strictObject({
    decision: z.strictObject({
      ...{ kind: z.enum(KINDS), id: text.nullable(), decidedBy: text, verdict: z.enum(VERDICTS) },
    }),
  }),
]);
const someValue = z.unknown().optional().describe("absent: nothing");
const testCase = {
  ...{ name: text, file: text, line: count, kind: z.enum(KINDS), kubelet: text.optional(), passed: z.boolean() },
  mismatches: z.array(z.strictObject({ path: text, expected: someValue, found: someValue })),
  reasons: texts.describe("codes of reasons that its answer gave"),
  seconds: z.number(),
};

/** What commands print that no route of the API answers, by the name that `nodewise schema` takes. */
export const COMMAND_FORMS = {
  "test-result": [
    "nodewise test -o json",
    z.strictObject({
      passed: count,
      failed: count,
      cases: z.array(z.strictObject(testCase)),
      reasons: z.array(z.strictObject({ kind: z.enum(KINDS), cases: count, met: texts, missed: texts })),
      faults: z.array(z.strictObject({ file: text, message: text })).describe("of files whose cases cannot be read"),
      passedOver: texts.describe("files that no case is in and that no case is given"),
    }),
  ],
  actuator: ["nodewise actuator -o json, each line", actuatorLine],
  "history-removals": ["nodewise history removals -o json", z.array(removal)],
  "history-removals-summary": ["nodewise history removals --summary -o json", removalSummary],
  machines: [
    "nodewise machines -o json",
    z.array(
      z.strictObject({
        ...{ name: text, cpus: count, cores: count, sockets: count, numaNodes: count, uncoreCaches: count },
        ...{ memoryBytes: count, description: text },
      }),
    ),
  ],
  kinds: [
    "nodewise kinds -o json",
    z.array(z.strictObject({ kind: z.enum(KINDS), policyVersions: texts, decides: text })),
  ],
  pods: ["nodewise pods -o json", nodeStatus],
  pod: [
    "nodewise pods NAME -o json",
    z.looseObject({
      ...ofStatus,
      pods: z.array(podRow),
      refusedManifests: z.array(z.looseObject({ pod: text })),
      events: z.array(z.looseObject({ pod, reason: text, message: text })),
    }),
  ],
  top: [
    "nodewise top -o json",
    z.strictObject({
      ...ofStatus,
      pods: z.array(
        podRow.pick({ namespace: true, name: true, uid: true, phase: true, qos: true, resources: true, usage: true }),
      ),
    }),
  ],
  "probes-status": [
    "nodewise probes -o json",
    z.strictObject({ ...ofStatus, probes: z.array(probeRow).nullable().describe("null: this daemon probes nothing") }),
  ],
  "probes-plan": [
    "nodewise probes plan -o json",
    z.strictObject({
      probes: count,
      perSecond: z.strictObject(perHandler).describe("attempts"),
      maxAtOnce: z.strictObject({ spread: count, unspread: count }),
      execsAtOnce: z.strictObject({ expected: z.number(), hanging: z.number() }),
    }),
  ],
  "devices-status": [
    "nodewise devices -o json",
    z.strictObject({
      ...ofStatus,
      devices: z.array(deviceRow).nullable().describe("null: no device plugins are taken"),
    }),
  ],
  "probes-history": ["nodewise probes history -o json", historyForm],
  "devices-history": ["nodewise devices history -o json", historyForm],
  "devices-allocate": [
    "nodewise devices allocate -o json",
    z.strictObject({ node: text, pod, containers: z.array(z.looseObject({})) }),
  ],
  "devices-free": [
    "nodewise devices free -o json",
    z.strictObject({ pod: text.nullable(), uid: text, freed: z.unknown() }),
  ],
  gc: [
    "nodewise gc containers -o json and gc images -o json",
    z.strictObject({
      ...{ kind: z.enum(["container-gc", "image-gc"]), node: text, policyVersion: text, observedAt: text },
      assumed: text.optional(),
      decision: z.looseObject({ remove: z.array(z.looseObject({ id: text })) }).describe("as `decide` prints it"),
      ...{ verdict: z.enum(VERDICTS), reasons: z.array(z.looseObject({ at: text })), needs: texts, next: z.unknown() },
      removals: z
        .array(z.looseObject({ id: text }))
        .optional()
        .describe("of a pass, without --dry-run"),
      fileSystem: z.unknown().optional(),
      complete: z.boolean().optional(),
      problems: z.array(z.unknown()).optional(),
    }),
  ],
  takeover: [
    "nodewise takeover -o json",
    z.strictObject({
      node: text,
      runtimeEndpoint: text,
      dryRun: z.boolean(),
      kubelets: z.array(z.strictObject({ pid: count, name: text })),
      stops: z.array(
        z.looseObject({
          ...{ pod: text, sandbox, priority: z.number(), graceSeconds: z.number() },
          containers: z.array(z.strictObject({ id: text, name: text, waitsFor: z.unknown(), preStop: z.boolean() })),
        }),
      ),
      stays: z.array(z.strictObject({ pod: text, sandbox, why: text })),
      cameBack: z.unknown().optional(),
    }),
  ],
  token: [
    "nodewise token create -o json",
    z.strictObject({
      ...{ token: text.describe("shown only now"), ...token, ...tokenTimes },
      sql: text.optional().describe("with --print: makes it known to a Worker's database"),
    }),
  ],
  "token-list": ["nodewise token list -o json", z.array(z.strictObject({ ...token, ...tokenTimes }))],
  version: [
    "nodewise version -o json",
    z.strictObject({
      version: text,
      kubelets: texts,
      policyVersions: texts,
      node: text.describe("the version of Node.js"),
    }),
  ],
} as const satisfies Readonly<Record<string, readonly [what: string, form: z.ZodType]>>;
