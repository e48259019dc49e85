import type { PodContainer, PodSpec, RunnablePod } from "../../actuator/lifecycle/pod.ts";
import type { ProbedContainer, ProbedPod } from "../../actuator/probes/engine/probed.ts";
import type { ProbeHandler, ProbeSpec, ProbeType } from "../../api/model/probe-spec.ts";

const NO_PROBES: Readonly<Record<ProbeType, ProbeSpec | null>> = { startup: null, liveness: null, readiness: null };
/** A container that has only a name and an image. */
const PLAIN_CONTAINER: Omit<PodContainer, "name" | "image"> = {
  command: [],
  args: [],
  workingDir: "",
  ports: [],
  env: [],
  mounts: [],
  imagePullPolicy: "IfNotPresent",
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  postStart: null,
  preStop: null,
  security: {
    runAsUser: null,
    runAsGroup: null,
    runAsNonRoot: null,
    privileged: false,
    readOnlyRootFilesystem: false,
    allowPrivilegeEscalation: null,
    addCapabilities: [],
    dropCapabilities: [],
    seccomp: null,
    appArmor: null,
  },
  stdin: false,
  stdinOnce: false,
  tty: false,
  isSidecar: false,
  probes: NO_PROBES,
};
/** A pod without requests. */
const PLAIN_SPEC: PodSpec = {
  containers: [],
  initContainers: [],
  volumes: [],
  restartPolicy: "Always",
  terminationGracePeriodSeconds: 30,
  activeDeadlineSeconds: null,
  nodeName: "node",
  serviceAccountName: "",
  priority: null,
  hostNetwork: false,
  hostPID: false,
  hostIPC: false,
  shareProcessNamespace: false,
  hostname: null,
  subdomain: null,
  setHostnameAsFQDN: false,
  hostAliases: [],
  dnsPolicy: "ClusterFirst",
  dnsConfig: null,
  securityContext: {
    runAsUser: null,
    runAsGroup: null,
    runAsNonRoot: false,
    supplementalGroups: [],
    fsGroup: null,
    seccomp: null,
    appArmor: null,
    sysctls: {},
  },
};

/** A container as the daemon runs it. */
export const runnableContainer = (name: string, more: Partial<PodContainer> = {}): PodContainer => ({
  ...PLAIN_CONTAINER,
  name,
  image: "busybox",
  ...more,
});
/** A pod as the daemon runs it: static, with one container `app` by default. */
export const runnable = (spec: Partial<PodSpec> = {}, more: Partial<RunnablePod> = {}): RunnablePod => ({
  namespace: "default",
  name: "web",
  uid: "uid-1",
  labels: { app: "web" },
  annotations: {},
  isStatic: true,
  deletion: null,
  object: {},
  spec: { ...PLAIN_SPEC, containers: [runnableContainer("app")], ...spec },
  ...more,
});
type Limits = Readonly<Record<string, Readonly<Record<string, number | string>>>>;
/** A pod whose containers have these limits. */
export function limited(uid: string, containers: Limits, initContainers: Limits = {}, name = uid): RunnablePod {
  const listed = (of: Limits) =>
    Object.entries(of).map(([one, limits]) => ({ name: one, image: "busybox", resources: { limits } }));
  const made = (of: Limits) => Object.keys(of).map((one) => runnableContainer(one));
  const metadata = { name, namespace: "default", uid };
  const spec = { containers: listed(containers), initContainers: listed(initContainers) };
  return runnable(
    { containers: made(containers), initContainers: made(initContainers) },
    { name, uid, object: { apiVersion: "v1", kind: "Pod", metadata, spec } },
  );
}

/** The start time of containers that are probed. */
export const START = Date.parse("2026-11-22T12:00:00Z");
const HTTP: ProbeHandler = { http: { scheme: "HTTP", host: "", port: 80, path: "/", headers: [] } };
export const EXEC: ProbeHandler = { exec: ["true"] };
/** An HTTP probe every second. */
export const probe = (more: Partial<ProbeSpec> = {}): ProbeSpec => ({
  handler: HTTP,
  initialDelaySeconds: 0,
  timeoutSeconds: 1,
  periodSeconds: 1,
  successThreshold: 1,
  failureThreshold: 3,
  terminationGracePeriodSeconds: null,
  ...more,
});
/** A running container as the probes see it. */
export const probedContainer = (
  probes: Partial<Readonly<Record<ProbeType, ProbeSpec>>>,
  more: Partial<ProbedContainer> = {},
): ProbedContainer => ({
  name: "c",
  isSidecar: false,
  ports: [],
  env: [],
  id: "id-1",
  state: "running",
  startedAtMs: START,
  willRestart: true,
  wasStarted: null,
  probes: { ...NO_PROBES, ...probes },
  ...more,
});
/** A running pod as the probes see it. */
export const probed = (containers: readonly ProbedContainer[], more: Partial<ProbedPod> = {}): ProbedPod => ({
  uid: "pod-1",
  namespace: "ns",
  name: "web",
  owner: null,
  podIP: "10.0.0.1",
  deletionAtMs: null,
  phase: "Running",
  wasReady: false,
  containers,
  ...more,
});
