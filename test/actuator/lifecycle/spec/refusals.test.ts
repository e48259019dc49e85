import { describe, expect, test } from "vitest";
import { faultsOf, linesOf, podObject, withContainer } from "./sample.ts";

describe("a manifest is refused by field name for what the daemon does not support", () => {
  test.each([
    [
      withContainer({ envFrom: [{ configMapRef: { name: "a" } }] }),
      "spec.containers[0].envFrom: config maps and secrets need the API server",
    ],
    [
      withContainer({ env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] }),
      "spec.containers[0].env[0].valueFrom.secretKeyRef: needs the API server",
    ],
    [
      withContainer({ volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }),
      "spec.containers[0].volumeDevices: block devices",
    ],
    [withContainer({ lifecycle: { stopSignal: "SIGUSR1" } }), "spec.containers[0].lifecycle.stopSignal: "],
    [
      withContainer({ lifecycle: { preStop: { tcpSocket: { port: 1 } } } }),
      "spec.containers[0].lifecycle.preStop.tcpSocket: ",
    ],
    [
      withContainer({ securityContext: { seLinuxOptions: { level: "s0" } } }),
      "spec.containers[0].securityContext.seLinuxOptions: SELinux",
    ],
    [withContainer({ securityContext: { procMount: "Unmasked" } }), "spec.containers[0].securityContext.procMount: "],
    [withContainer({ restartPolicy: "Never" }), "spec.containers[0].restartPolicy: a container's own restart policy"],
    [withContainer({ resources: { claims: [{ name: "gpu" }] } }), "spec.containers[0].resources.claims: "],
    [
      podObject({ volumes: [{ name: "v", configMap: { name: "a" } }] }),
      "spec.volumes[0].configMap: its content comes from the API server",
    ],
    [
      podObject({ volumes: [{ name: "v", persistentVolumeClaim: { claimName: "a" } }] }),
      "spec.volumes[0].persistentVolumeClaim: claims need",
    ],
    [
      podObject({ volumes: [{ name: "v", nfs: { server: "a", path: "/" } }] }),
      "spec.volumes[0].nfs: this daemon mounts emptyDir and hostPath only",
    ],
    [
      podObject({ volumes: [{ name: "v", emptyDir: { medium: "HugePages-2Mi" } }] }),
      "spec.volumes[0].emptyDir.medium: huge pages",
    ],
    [
      withContainer({ resources: { limits: { "a.kubernetes.io/gpu": 1 } } }),
      'spec.containers[0].resources.limits["a.kubernetes.io/gpu"]: no device plugin may have a name of kubernetes.io',
    ],
    [podObject({ serviceAccountName: "runner" }), "spec.serviceAccountName: accounts and their tokens need"],
    [podObject({ serviceAccount: "runner" }), "spec.serviceAccount: accounts and their tokens need the API server"],
    [podObject({ ephemeralContainers: [{ name: "debug" }] }), "spec.ephemeralContainers: "],
    [podObject({ runtimeClassName: "gvisor" }), "spec.runtimeClassName: runtime classes need"],
    [podObject({ hostUsers: false }), "spec.hostUsers: user namespaces"],
    [podObject({ imagePullSecrets: [{ name: "s" }] }), "spec.imagePullSecrets: secrets need the API server"],
    [podObject({ automountServiceAccountToken: true }), "spec.automountServiceAccountToken: no API server"],
    [
      podObject({ securityContext: { supplementalGroupsPolicy: "Strict" } }),
      "spec.securityContext.supplementalGroupsPolicy: ",
    ],
    [
      podObject({}, { annotations: { "kubernetes.io/config.mirror": "ab" } }),
      'metadata.annotations["kubernetes.io/config.mirror"]: the API server\'s image',
    ],
    [
      podObject({}, { annotations: { "seccomp.security.alpha.kubernetes.io/pod": "x" } }),
      'metadata.annotations["seccomp.security.alpha.kubernetes.io/pod"]: no longer read',
    ],
  ])("case %#: %j", (object, line) => {
    const lines = linesOf(object);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.startsWith(line), lines[0]).toBe(true);
  });

  test("a service account token says how to leave it out, and its mounts are no second fault", () => {
    const token = { name: "kube-api-access-x2x", projected: { sources: [] } };
    const mount = { name: token.name, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true };
    const faults = faultsOf(withContainer({ volumeMounts: [mount] }, { volumes: [token] }));
    expect(faults.map(({ path }) => path)).toEqual(["spec.volumes[0].projected"]);
    expect(faults[0]?.message).toContain("`automountServiceAccountToken: false`");
  });

  test("fields that ask for nothing are accepted", () => {
    const harmless = podObject({
      imagePullSecrets: [],
      ephemeralContainers: null,
      hostUsers: true,
      automountServiceAccountToken: false,
      serviceAccountName: "runner",
      enableServiceLinks: true,
      securityContext: { supplementalGroupsPolicy: "Merge" },
      volumes: [{ name: "v", emptyDir: {}, hostPath: null }],
      containers: [
        {
          name: "c",
          image: "a:1",
          envFrom: [],
          livenessProbe: null,
          securityContext: { procMount: "Default" },
          resources: {
            limits: { "kubernetes.io/gpu": 0, "nvidia.com/gpu": 0, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi" },
          },
        },
      ],
    });
    expect(linesOf(harmless)).toEqual([]);
    expect(linesOf(podObject({ serviceAccountName: "default", serviceAccount: "default" }))).toEqual([]);
  });
});

describe("an unknown field is refused with the closest name", () => {
  test.each([
    [
      withContainer({ imagePullPolcy: "Never" }),
      "spec.containers[0].imagePullPolcy: no such field; `imagePullPolicy`?",
    ],
    [withContainer({ volumemounts: [] }), "spec.containers[0].volumemounts: no such field; `volumeMounts`?"],
    [
      withContainer({ ports: [{ containerPort: 1, hostport: 1 }] }),
      "spec.containers[0].ports[0].hostport: no such field; `hostPort`?",
    ],
    [podObject({ "x/y": 1 }), 'spec["x/y"]: no such field'],
    [podObject({ replicas: 3 }), "spec.replicas: no such field"],
    [podObject({}, { lables: {} }), "metadata.lables: no such field; `labels`?"],
    [{ ...podObject(), sepc: {} }, "sepc: no such field; `spec`?"],
  ])("case %#", (object, line) => {
    expect(linesOf(object)).toEqual([line]);
  });
});

describe("a value of another type is refused", () => {
  test.each([
    [withContainer({ name: 12 }), "spec.containers[0].name: expected text, found `12` (in YAML it needs quotes)"],
    [
      withContainer({ env: [{ name: "A", value: true }] }),
      "spec.containers[0].env[0].value: expected text, found `true` (in YAML it needs quotes)",
    ],
    [withContainer({ tty: "yes" }), "spec.containers[0].tty: expected true or false, found `yes`"],
    [withContainer({ command: "sh" }), "spec.containers[0].command: expected a list, found `sh`"],
    [
      withContainer({ args: ["-p", 80] }),
      "spec.containers[0].args[1]: expected text, found `80` (in YAML it needs quotes)",
    ],
    [
      withContainer({ securityContext: { runAsUser: "1000" } }),
      "spec.containers[0].securityContext.runAsUser: expected a whole number, found `1000`",
    ],
    [
      podObject({ terminationGracePeriodSeconds: 1.5 }),
      "spec.terminationGracePeriodSeconds: expected a whole number, found `1.5`",
    ],
    [podObject({ volumes: { name: "v" } }), "spec.volumes: expected a list, found an object"],
    [podObject({}, { labels: ["a"] }), "metadata.labels: expected an object, found a list"],
    [
      { apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "b", uid: "c" }, spec: null },
      "spec: expected an object, found nothing",
    ],
    [12, "$: expected an object, found `12`"],
  ])("case %#", (object, line) => {
    expect(linesOf(object)).toContain(line);
  });
});

test("all faults are reported at once, in the order of the fields, each once", () => {
  const object = podObject({
    volumes: [{ name: "V", emptyDir: {} }],
    containers: [
      { name: "c", livenessProbe: {}, volumeMounts: [{ name: "gone", mountPath: "/a" }] },
      { name: "c", image: "a:1", ports: [{ containerPort: 70000 }] },
    ],
    restartPolicy: "Sometimes",
  });
  expect(faultsOf(object).map(({ path }) => path)).toEqual([
    "spec.volumes[0].name",
    "spec.containers[0].image",
    "spec.containers[0].volumeMounts[0].name",
    "spec.containers[0].livenessProbe",
    "spec.containers[1].ports[0].containerPort",
    "spec.containers[1].name",
    "spec.restartPolicy",
  ]);
});

test("a manifest with thousands of faults reports the first hundred", () => {
  const spec = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`field${i}`, i]));
  expect(faultsOf(podObject(spec))).toHaveLength(100);
});
