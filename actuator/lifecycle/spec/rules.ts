import type { Profile } from "../../../api/profiles/profile.ts";
import type { KnownFields } from "../../../api/profiles/unknown-fields.ts";
import { accepted, done, each, type FieldRules, forTypes, type Rule, refused, unlessServed } from "./rule.ts";

const VALUE_NEEDS_API = refused("needs the API server: write the value in `value`");
const RESOURCE_CLAIMS = unlessServed(
  "draDrivers",
  "ResourceClaims are prepared where DRA drivers are served: set `draDrivers: serve`, or remove it",
);
const VARIABLES = refused("config maps and secrets need the API server: write the variables in `env`");

const CONTAINER_RULES = {
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
    claims: RESOURCE_CLAIMS,
  },
  ResourceClaim: each("name request", done),
  ContainerPort: each("name hostPort containerPort protocol hostIP", done),
  EnvVar: each("name value valueFrom", done),
  EnvVarSource: {
    ...each("fieldRef resourceFieldRef", done),
    ...each("configMapKeyRef secretKeyRef", VALUE_NEEDS_API),
    fileKeyRef: refused("variables of a file are not read by this daemon: write the value in `value`"),
  },
  ObjectFieldSelector: each("apiVersion fieldPath", done),
  ResourceFieldSelector: each("containerName resource divisor", done),
  VolumeMount: {
    ...each("name readOnly mountPath subPath mountPropagation subPathExpr", done),
    bindMountOptions: forTypes(
      "VolumeMount.bindMountOptions",
      refused("options of a mount are not set by this daemon: remove it"),
    ),
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
  GRPCAction: {
    ...each("port service", done),
    mode: forTypes(
      "GRPCAction.mode",
      refused("probes are not done over TLS: remove it, or set it to Plaintext", "Plaintext"),
    ),
  },
  ExecAction: each("command", done),
  HTTPGetAction: {
    ...each("path port host scheme httpHeaders", done),
    protocol: forTypes(
      "HTTPGetAction.protocol",
      refused("HTTP/2 is not asked: remove it, or set it to HTTP1", "HTTP1"),
    ),
  },
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

const SCHEDULERS = accepted("a scheduler reads it, and the pod has its node already");
const ADMISSION = accepted("the `admission` decision compares it with the node");
const OBJECT = accepted("the API server's own bookkeeping");

const POD_RULES = {
  Pod: {
    ...each("apiVersion kind metadata spec", done),
    status: accepted("the status is not read; the runtime reports the pod's state"),
  },
  ObjectMeta: {
    ...each("name namespace uid labels annotations deletionTimestamp deletionGracePeriodSeconds", done),
    ...each("generateName selfLink resourceVersion generation creationTimestamp ownerReferences", OBJECT),
    ...each("finalizers managedFields", OBJECT),
  },
  PodSpec: {
    ...each("volumes initContainers containers restartPolicy terminationGracePeriodSeconds", done),
    ...each("activeDeadlineSeconds dnsPolicy serviceAccountName serviceAccount nodeName", done),
    ...each("hostNetwork hostPID hostIPC shareProcessNamespace securityContext hostname subdomain", done),
    ...each("hostAliases priority priorityClassName dnsConfig setHostnameAsFQDN", done),
    ...each("schedulerName topologySpreadConstraints preemptionPolicy", SCHEDULERS),
    workloadRef: forTypes("PodSpec.workloadRef", SCHEDULERS),
    schedulingGroup: forTypes("PodSpec.schedulingGroup", SCHEDULERS),
    evictionResponders: forTypes("PodSpec.evictionResponders", accepted("who evicts through an API server reads it")),
    ...each("nodeSelector affinity tolerations os", ADMISSION),
    overhead: accepted("the decisions add it to what the pod requests"),
    resources: accepted("the `cgroups` and `admission` decisions read it"),
    enableServiceLinks: accepted("only an API server lists services; there are none to link"),
    ephemeralContainers: refused("ephemeral containers are not run by this daemon: remove them"),
    automountServiceAccountToken: refused(
      "no API server gives this daemon tokens: remove it, or set it to false",
      false,
    ),
    imagePullSecrets: refused(
      "secrets need the API server: remove it, and let the runtime's registry configuration hold the login",
    ),
    readinessGates: refused("others set these conditions through the API server: remove it"),
    runtimeClassName: refused("runtime classes need the API server: remove it for the runtime's default"),
    hostUsers: refused("user namespaces are not made by this daemon: remove it, or set it to true", true),
    schedulingGates: refused("a gated pod has no node yet: remove the gates"),
    resourceClaims: RESOURCE_CLAIMS,
    hostnameOverride: refused("not done by this daemon: remove it, and set `hostname`"),
  },
  PodResourceClaim: each("name resourceClaimName resourceClaimTemplateName", done),
  PodSecurityContext: {
    ...each("runAsUser runAsGroup runAsNonRoot supplementalGroups fsGroup sysctls", done),
    ...each("seccompProfile appArmorProfile", done),
    fsGroupChangePolicy: accepted("emptyDir volumes are new with their group, and no others get one"),
    seLinuxChangePolicy: accepted("labels are refused where they are asked for, in `seLinuxOptions`"),
    seLinuxOptions: refused("SELinux labels are not set by this daemon: remove it"),
    windowsOptions: refused("this is a Linux node: remove it"),
    supplementalGroupsPolicy: refused(
      "groups are merged with those of the image's user: remove it, or set it to Merge",
      "Merge",
    ),
  },
  Sysctl: each("name value", done),
  PodDNSConfig: each("nameservers searches options", done),
  PodDNSConfigOption: each("name value", done),
  HostAlias: each("ip hostnames", done),
} as const;

const NEEDS_API = refused("its content comes from the API server: use emptyDir, or a hostPath with the files");
const NETWORK = refused("this daemon mounts emptyDir and hostPath only: mount it on the node, and use a hostPath");
const CLAIM = refused("claims need the API server: use a hostPath, or an emptyDir where the data may go with the pod");

const VOLUME_RULES = {
  Volume: {
    ...each("name hostPath emptyDir", done),
    ...each("configMap secret projected", NEEDS_API),
    ...each("persistentVolumeClaim ephemeral", CLAIM),
    downwardAPI: refused("files about the pod are not written by this daemon: use `env` with `fieldRef`"),
    image: refused("image volumes are not mounted by this daemon: copy from the image in an init container"),
    gitRepo: refused("no longer part of Kubernetes: clone into an emptyDir in an init container"),
    ...each("gcePersistentDisk awsElasticBlockStore nfs iscsi glusterfs rbd flexVolume cinder cephfs", NETWORK),
    ...each("flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk", NETWORK),
    ...each("portworxVolume scaleIO storageos csi", NETWORK),
  },
  EmptyDirVolumeSource: {
    ...each("medium sizeLimit", done),
    mode: forTypes(
      "EmptyDirVolumeSource.mode",
      refused("the mode of an emptyDir is not set by this daemon: remove it"),
    ),
  },
  HostPathVolumeSource: each("path type", done),
} as const;

/** Every field of a v1.Pod that can be written in a manifest, by the name of its Go type. kubernetes 1.34 to 1.37: core/v1/types.go. */
export const RULES = { ...POD_RULES, ...CONTAINER_RULES, ...VOLUME_RULES } as const satisfies Readonly<
  Record<string, FieldRules>
>;

const PROBE = {
  "": "Probe",
  exec: "ExecAction",
  httpGet: "HTTPGetAction",
  tcpSocket: "TCPSocketAction",
  grpc: "GRPCAction",
} as const;
const CONTAINER = {
  "": "Container",
  ports: "ContainerPort",
  env: "EnvVar",
  resources: "ResourceRequirements",
  securityContext: "SecurityContext",
  volumeMounts: "VolumeMount",
  ...below("startupProbe", PROBE),
  ...below("livenessProbe", PROBE),
  ...below("readinessProbe", PROBE),
} as const;
const POD = {
  "": "Pod",
  metadata: "ObjectMeta",
  spec: "PodSpec",
  "spec.securityContext": "PodSecurityContext",
  "spec.resources": "ResourceRequirements",
  "spec.volumes": "Volume",
  ...below("spec.containers", CONTAINER),
  ...below("spec.initContainers", CONTAINER),
} as const;

/** Fields that a v1.Pod, and what in it decisions are made by, has in a version. */
export const podFieldsOf = ({ podFields }: Profile): KnownFields =>
  new Map(
    Object.entries(POD).map(([form, type]) => {
      const known = Object.entries<Rule>(RULES[type]).filter(
        ([, { only }]) => only === undefined || podFields.has(only),
      );
      return [form, known.map(([name]) => name)];
    }),
  );

function below<T>(at: string, types: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(types).map(([form, type]) => [form === "" ? at : `${at}.${form}`, type]));
}
