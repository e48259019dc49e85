import { accepted, done, each, refused } from "./rule.ts";

const NEEDS_API = refused("needs the API server: write the value in `value`");
const VARIABLES = refused("config maps and secrets need the API server: write the variables in `env`");

export const CONTAINER_RULES = {
  Container: {
    ...each("name image command args workingDir ports env volumeMounts lifecycle", done),
    ...each("terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext", done),
    ...each("stdin stdinOnce tty restartPolicy resources", done),
    resizePolicy: accepted("a resize reads it"),
    envFrom: VARIABLES,
    restartPolicyRules: refused("restart rules by exit code are not done by this daemon: remove it"),
    volumeDevices: refused("block devices are not given to containers by this daemon: remove it"),
    ...each("livenessProbe readinessProbe startupProbe", done),
  },
  ResourceRequirements: {
    ...each("limits requests", accepted("the decisions read it")),
    claims: refused("claims need the API server: remove it"),
  },
  ContainerPort: each("name hostPort containerPort protocol hostIP", done),
  EnvVar: each("name value valueFrom", done),
  EnvVarSource: {
    ...each("fieldRef resourceFieldRef", done),
    ...each("configMapKeyRef secretKeyRef", NEEDS_API),
    fileKeyRef: refused("variables of a file are not read by this daemon: write the value in `value`"),
  },
  ObjectFieldSelector: each("apiVersion fieldPath", done),
  ResourceFieldSelector: each("containerName resource divisor", done),
  VolumeMount: {
    ...each("name readOnly mountPath subPath mountPropagation subPathExpr", done),
    recursiveReadOnly: refused(
      "mounts below a read-only one are as they are: remove it, or set it to Disabled",
      "Disabled",
    ),
  },
  Lifecycle: {
    ...each("postStart preStop", done),
    stopSignal: refused("the image says which signal stops it: remove it"),
  },
  LifecycleHandler: {
    ...each("exec httpGet sleep", done),
    tcpSocket: refused("not done, and a kubelet fails on it too: use `exec` or `httpGet`"),
  },
  Probe: {
    ...each("exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds", done),
    ...each("successThreshold failureThreshold terminationGracePeriodSeconds", done),
  },
  TCPSocketAction: each("port host", done),
  GRPCAction: each("port service", done),
  ExecAction: each("command", done),
  HTTPGetAction: each("path port host scheme httpHeaders", done),
  HTTPHeader: each("name value", done),
  SleepAction: each("seconds", done),
  SecurityContext: {
    ...each("capabilities privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem", done),
    ...each("allowPrivilegeEscalation seccompProfile appArmorProfile", done),
    seLinuxOptions: refused("SELinux labels are not set by this daemon: remove it"),
    windowsOptions: refused("this is a Linux node: remove it"),
    procMount: refused("an unmasked /proc needs a user namespace: remove it, or set it to Default", "Default"),
  },
  Capabilities: each("add drop", done),
  SeccompProfile: each("type localhostProfile", done),
  AppArmorProfile: each("type localhostProfile", done),
} as const;
