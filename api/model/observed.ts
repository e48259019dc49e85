import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { withoutNulls } from "../base/nulls.ts";
import { err, ok, type Result } from "../base/result.ts";
import { isTimestamp } from "./fields.ts";

/**
 * The parts of pods, nodes, events and stats that show what happened to a pod. They are displayed, never decided on
 * (`pod.ts` and `units.ts` have the forms for that), so nearly everything may be absent; a value of a form that
 * Kubernetes does not use is an issue with its place. Environment variables, commands and arguments are not read.
 */

const name = z.string().max(LIMITS.textLength);
const text = name.optional();
/** Words of somebody, which may be long. */
const words = z
  .string()
  .max(1024 * 1024)
  .optional();
/** A time; an invalid one counts as absent. */
const time = z.string().refine(isTimestamp).optional().catch(undefined);
const whole = z.int().optional();
const number = z.number().optional();
const list = <S extends z.ZodType>(item: S) => z.array(item).max(4096).optional();
const quantities = z.record(name, z.union([name, z.number()])).optional();
const requirements = z.object({ requests: quantities, limits: quantities }).optional();

const terminated = z.object({
  exitCode: whole,
  signal: whole,
  reason: text,
  message: words,
  startedAt: time,
  finishedAt: time,
});
export type TerminatedState = z.output<typeof terminated>;
const state = z
  .object({
    waiting: z.object({ reason: text, message: words }).optional(),
    running: z.object({ startedAt: time }).optional(),
    terminated: terminated.optional(),
  })
  .optional();
const containerStatus = z.object({
  name,
  containerID: text,
  image: text,
  imageID: text,
  ready: z.boolean().optional(),
  started: z.boolean().optional(),
  restartCount: whole,
  state,
  lastState: state,
  resources: requirements,
});
export type ObservedContainerStatus = z.output<typeof containerStatus>;

const condition = z.object({ type: name, status: text, reason: text, message: words, lastTransitionTime: time });
export type ObservedCondition = z.output<typeof condition>;

const probe = z
  .object({ timeoutSeconds: whole, periodSeconds: whole, failureThreshold: whole, initialDelaySeconds: whole })
  .optional();
const container = z.object({
  name,
  image: text,
  imagePullPolicy: text,
  restartPolicy: text,
  resources: requirements,
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
});
export type ObservedContainer = z.output<typeof container>;

const metadata = z.object({
  name,
  namespace: text,
  uid: text,
  resourceVersion: text,
  creationTimestamp: time,
  deletionTimestamp: time,
  deletionGracePeriodSeconds: whole,
  annotations: z.record(name, z.string()).optional(),
  finalizers: list(name),
  ownerReferences: list(z.object({ kind: text, name: text, controller: z.boolean().optional() })),
});

const pod = z.object({
  metadata,
  spec: z
    .object({
      nodeName: text,
      restartPolicy: text,
      priority: whole,
      priorityClassName: text,
      activeDeadlineSeconds: whole,
      containers: list(container),
      initContainers: list(container),
      readinessGates: list(z.object({ conditionType: name })),
      schedulingGates: list(z.object({ name })),
      resources: requirements,
    })
    .optional(),
  status: z
    .object({
      phase: text,
      reason: text,
      message: words,
      startTime: time,
      qosClass: text,
      hostIP: text,
      conditions: list(condition),
      containerStatuses: list(containerStatus),
      initContainerStatuses: list(containerStatus),
    })
    .optional(),
});
export type ObservedPod = z.output<typeof pod>;

const node = z.object({
  metadata: z.object({ name }),
  status: z
    .object({
      conditions: list(condition.extend({ lastHeartbeatTime: time })),
      addresses: list(z.object({ type: text, address: text })),
      capacity: quantities,
    })
    .optional(),
});
export type ObservedNode = z.output<typeof node>;

const about = z.object({ kind: text, namespace: text, name: text, uid: text, fieldPath: text });
/** core/v1 and events.k8s.io/v1 use different names for the same fields. */
const event = z
  .object({
    involvedObject: about.optional(),
    regarding: about.optional(),
    reason: text,
    message: words,
    note: words,
    type: text,
    count: whole,
    deprecatedCount: whole,
    firstTimestamp: time,
    lastTimestamp: time,
    deprecatedFirstTimestamp: time,
    deprecatedLastTimestamp: time,
    eventTime: time,
    series: z.object({ count: whole, lastObservedTime: time }).optional(),
    metadata: z.object({ creationTimestamp: time, annotations: z.record(name, z.string()).optional() }).optional(),
    source: z.object({ component: text, host: text }).optional(),
    deprecatedSource: z.object({ component: text, host: text }).optional(),
    reportingComponent: text,
    reportingController: text,
    reportingInstance: text,
  })
  .transform((e) => {
    const series = e.series;
    const first = e.firstTimestamp ?? e.deprecatedFirstTimestamp ?? e.eventTime ?? e.metadata?.creationTimestamp;
    return {
      about: e.involvedObject ?? e.regarding ?? {},
      reason: e.reason ?? "",
      message: e.message ?? e.note ?? "",
      type: e.type ?? "",
      count: series?.count ?? e.count ?? e.deprecatedCount ?? 1,
      first,
      last: series?.lastObservedTime ?? e.lastTimestamp ?? e.deprecatedLastTimestamp ?? first,
      component: e.source?.component ?? e.deprecatedSource?.component ?? e.reportingComponent ?? e.reportingController,
      host: e.source?.host ?? e.deprecatedSource?.host ?? e.reportingInstance,
      annotations: e.metadata?.annotations ?? {},
    };
  });
/** An event of either API. `first` and `last` are RFC 3339. */
export type ObservedEvent = z.output<typeof event>;

const pressure = z.object({ avg10: number, avg60: number, avg300: number }).optional();
/** The use of a pod's containers by the kubelet's /stats/summary, beyond what decisions read. */
const summary = z.object({
  node: z
    .object({
      nodeName: text,
      cpu: z.object({ time, usageNanoCores: whole }).optional(),
      memory: z.object({ time }).optional(),
    })
    .optional(),
  pods: list(
    z.object({
      podRef: z.object({ name: text, namespace: text, uid: text }),
      containers: list(
        z.object({
          name,
          cpu: z
            .object({ time, usageNanoCores: whole, psi: z.object({ some: pressure, full: pressure }).optional() })
            .optional(),
          memory: z.object({ time, usageBytes: whole, workingSetBytes: whole, rssBytes: whole }).optional(),
        }),
      ),
    }),
  ),
});
export type ObservedSummary = z.output<typeof summary>;

/** Makes a reader of one form. Errors: every issue, at most `MAX_ISSUES`, with its path in the document. */
const reader =
  <S extends z.ZodType>(schema: S) =>
  (value: unknown): Result<z.output<S>, readonly InputIssue[]> => {
    const parsed = schema.safeParse(withoutNulls(value));
    if (parsed.success) return ok(parsed.data);
    const issues = parsed.error.issues.slice(0, MAX_ISSUES);
    return err(issues.map(({ path, message }) => ({ path: joinPath("", path), message })));
  };
const MAX_ISSUES = 10;

export const readPod = reader(pod);
export const readNode = reader(node);
export const readEvent = reader(event);
export const readSummary = reader(summary);
