import { describe, expect, test } from "vitest";
import { CONTAINER, type Fields, linesOf, podObject, withContainer } from "./sample.ts";

const VOLUME = { volumes: [{ name: "v", emptyDir: {} }] };
const mounted = (...mounts: Fields[]) =>
  withContainer({ volumeMounts: mounts.map((m) => ({ name: "v", mountPath: "/v", ...m })) }, VOLUME);
const hooked = (handler: Fields, container: Fields = {}) =>
  withContainer({ ...container, lifecycle: { preStop: handler } });
const variable = (more: Fields) => withContainer({ env: [{ name: "A", ...more }] });
const C0 = "spec.containers[0]";

describe("values that the API server would refuse are refused in its words", () => {
  test.each<[string, Fields, string]>([
    ["no name", podObject({}, { name: "" }), "metadata.name: Required value"],
    [
      "namespace",
      podObject({}, { namespace: "a.b" }),
      'metadata.namespace: Invalid value: "a.b": must not contain dots',
    ],
    ["no uid", podObject({}, { uid: null }), "metadata.uid: Required value: it names the pod's directories and cgroup"],
    [
      "uid",
      podObject({}, { uid: "../x" }),
      'metadata.uid: Invalid value: "../x": must be letters, digits, `-` or `.`, at most 253',
    ],
    ["kind", { ...podObject(), kind: "Deployment" }, 'kind: Invalid value: "Deployment": must be Pod'],
    ["no containers", podObject({ containers: [] }), "spec.containers: Required value"],
    [
      "image",
      withContainer({ image: " a" }),
      `${C0}.image: Invalid value: " a": must not have leading or trailing whitespace`,
    ],
    [
      "pull policy",
      withContainer({ imagePullPolicy: "Newer" }),
      `${C0}.imagePullPolicy: Unsupported value: "Newer": supported values: "Always", "IfNotPresent", "Never"`,
    ],
    ["init name", podObject({ initContainers: [CONTAINER] }), 'spec.initContainers[0].name: Duplicate value: "c"'],
    [
      "port",
      withContainer({ ports: [{ containerPort: 65536 }] }),
      `${C0}.ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive`,
    ],
    ["no port", withContainer({ ports: [{ hostPort: 1 }] }), `${C0}.ports[0].containerPort: Required value`],
    [
      "port names",
      withContainer({
        ports: [
          { containerPort: 1, name: "a" },
          { containerPort: 2, name: "a" },
        ],
      }),
      `${C0}.ports[1].name: Duplicate value: "a"`,
    ],
    [
      "host ports",
      withContainer({
        ports: [
          { containerPort: 1, hostPort: 9 },
          { containerPort: 2, hostPort: 9 },
        ],
      }),
      `${C0}.ports[1].hostPort: Duplicate value: "TCP//9"`,
    ],
    [
      "host network",
      withContainer({ ports: [{ containerPort: 1, hostPort: 9 }] }, { hostNetwork: true }),
      `${C0}.ports[0].hostPort: Invalid value: 9: must match \`containerPort\` when \`hostNetwork\` is true`,
    ],
    [
      "mount of nothing",
      withContainer({ volumeMounts: [{ name: "w", mountPath: "/w" }] }),
      `${C0}.volumeMounts[0].name: Not found: "w"`,
    ],
    ["mounts twice", mounted({}, {}), `${C0}.volumeMounts[1].mountPath: Invalid value: "/v": must be unique`],
    [
      "relative mount",
      mounted({ mountPath: "v" }),
      `${C0}.volumeMounts[0].mountPath: Invalid value: "v": must be an absolute path`,
    ],
    [
      "sub path",
      mounted({ subPath: "a/../b" }),
      `${C0}.volumeMounts[0].subPath: Invalid value: "a/../b": must not contain '..'`,
    ],
    [
      "absolute sub path",
      mounted({ subPathExpr: "/$(A)" }),
      `${C0}.volumeMounts[0].subPathExpr: Invalid value: "/$(A)": must be a relative path`,
    ],
    [
      "both sub paths",
      mounted({ subPath: "a", subPathExpr: "b" }),
      `${C0}.volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive`,
    ],
    [
      "propagation",
      mounted({ mountPropagation: "Bidirectional" }),
      `${C0}.volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
    ],
    [
      "volume names",
      podObject({ volumes: [{ name: "v" }, { name: "v" }] }),
      'spec.volumes[1].name: Duplicate value: "v"',
    ],
    [
      "two sources",
      podObject({ volumes: [{ name: "v", emptyDir: {}, hostPath: { path: "/a" } }] }),
      "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
    ],
    [
      "host path",
      podObject({ volumes: [{ name: "v", hostPath: { path: "/a/../b" } }] }),
      "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
    ],
    [
      "host path's type",
      podObject({ volumes: [{ name: "v", hostPath: { path: "/a", type: "Dir" } }] }),
      'spec.volumes[0].hostPath.type: Unsupported value: "Dir": supported values: "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
    ],
    [
      "size",
      podObject({ volumes: [{ name: "v", emptyDir: { sizeLimit: "-1" } }] }),
      "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
    ],
    [
      "variable's name",
      withContainer({ env: [{ name: "a=b" }] }),
      `${C0}.env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`,
    ],
    [
      "value and source",
      variable({ value: "x", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }),
      `${C0}.env[0].valueFrom: Invalid value: "": may not be specified when \`value\` is not empty`,
    ],
    [
      "divisor",
      variable({ valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1Mi" } } }),
      `${C0}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
    ],
    [
      "subscript",
      variable({ valueFrom: { fieldRef: { fieldPath: "metadata.name['a']" } } }),
      `${C0}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name['a']": error converting fieldPath: field label does not support subscript: metadata.name['a']`,
    ],
    ["no handler", hooked({}), `${C0}.lifecycle.preStop: Required value: must specify a handler type`],
    [
      "two handlers",
      hooked({ exec: { command: ["a"] }, sleep: { seconds: 1 } }),
      `${C0}.lifecycle.preStop.sleep: Forbidden: may not specify more than 1 handler type`,
    ],
    [
      "long sleep",
      hooked({ sleep: { seconds: 31 } }),
      `${C0}.lifecycle.preStop.sleep.seconds: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)`,
    ],
    [
      "port's name",
      hooked({ httpGet: { port: "web" } }),
      `${C0}.lifecycle.preStop.httpGet.port: Invalid value: "web": no port of this container has that name`,
    ],
    [
      "init lifecycle",
      podObject({ initContainers: [{ name: "i", image: "a", lifecycle: { preStop: { sleep: { seconds: 1 } } } }] }),
      "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
    ],
    [
      "requests above limits",
      withContainer({ resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }),
      `${C0}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
    ],
    [
      "devices",
      withContainer({ resources: { requests: { "a.b/gpu": "1" } } }),
      `${C0}.resources.limits: Required value: Limit must be set for non overcommitable resources`,
    ],
    [
      "user",
      withContainer({ securityContext: { runAsUser: -1 } }),
      `${C0}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
    ],
    [
      "escalation",
      withContainer({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
      `${C0}.securityContext: cannot set \`allowPrivilegeEscalation\` to false and \`privileged\` to true`,
    ],
    [
      "seccomp",
      withContainer({ securityContext: { seccompProfile: { type: "Localhost" } } }),
      `${C0}.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost`,
    ],
    [
      "sysctl",
      podObject({ hostNetwork: true, securityContext: { sysctls: [{ name: "net/core/somaxconn", value: "1" }] } }),
      `spec.securityContext.sysctls[0].name: Invalid value: "net/core/somaxconn": may not be specified when 'hostNetwork' is true`,
    ],
    [
      "sysctl of IPC",
      podObject({ hostIPC: true, securityContext: { sysctls: [{ name: "kernel.shmmax", value: "1" }] } }),
      `spec.securityContext.sysctls[0].name: Invalid value: "kernel.shmmax": may not be specified when 'hostIPC' is true`,
    ],
    [
      "shared processes",
      podObject({ hostPID: true, shareProcessNamespace: true }),
      "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
    ],
    [
      "no DNS",
      podObject({ dnsPolicy: "None" }),
      "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
    ],
    [
      "name server",
      podObject({ dnsConfig: { nameservers: ["1.2.3"] } }),
      'spec.dnsConfig.nameservers[0]: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      "alias",
      podObject({ hostAliases: [{ ip: "::1", hostnames: ["A"] }] }),
      'spec.hostAliases[0].hostnames[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of',
    ],
    [
      "deadline",
      podObject({ activeDeadlineSeconds: 0 }),
      "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
    ],
    [
      "grace",
      podObject({ terminationGracePeriodSeconds: -1 }),
      "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
    ],
    [
      "label",
      podObject({}, { labels: { a: "b c" } }),
      'metadata.labels.a: Invalid value: "b c": a valid label must be an empty string or consist of',
    ],
    [
      "AppArmor annotation",
      podObject({}, { annotations: { "container.apparmor.security.beta.kubernetes.io/x": "unconfined" } }),
      'metadata.annotations["container.apparmor.security.beta.kubernetes.io/x"]: Invalid value: "unconfined": container not found',
    ],
  ])("%s", (_name, object, line) => {
    const lines = linesOf(object);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.slice(0, line.length)).toBe(line);
  });

  test("init containers may use the same host port, since they run one after the other", () => {
    const port = { ports: [{ containerPort: 1, hostPort: 9 }] };
    const init = ["i", "j"].map((name) => ({ name, image: "a:1", ...port }));
    expect(linesOf(withContainer(port, { initContainers: init }))).toEqual([]);
    expect(linesOf(podObject({ containers: init }))).toEqual([
      'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//9"',
    ]);
  });
});
