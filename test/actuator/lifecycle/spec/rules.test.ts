import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runnablePod } from "../../../../actuator/lifecycle/spec/pod-spec.ts";
import type { FieldRules } from "../../../../actuator/lifecycle/spec/rule.ts";
import { RULES } from "../../../../actuator/lifecycle/spec/rules.ts";
import { profileOf } from "../../../../api/profiles/index.ts";
import { RECORDED, UNRECORDED } from "../../../kit/recorded.ts";
import { podObject, withContainer } from "./sample.ts";

/** JSON names of the fields of each release's Go types, from its core/v1/types.go and meta/v1/types.go: see test/data/pod-fields/main.go. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = JSON.parse(
  readFileSync(new URL("../../../data/v1-pod-fields.json", import.meta.url), "utf8"),
);

test.skip.each(UNRECORDED)("the fields of a pod of $version are not recorded", () => {});
test.each(RECORDED)("every field of a pod of $version has a rule, and no other field has one", (profile) => {
  const fields = FIELDS[profile.release] ?? {};
  expect(Object.keys(RULES).sort()).toEqual(Object.keys(fields).sort());
  for (const [type, rules] of Object.entries<FieldRules>(RULES)) {
    const known = Object.entries(rules).filter(([name, { only }]) => {
      if (only !== undefined) expect(only).toBe(`${type}.${name}`);
      return only === undefined || profile.podFields.has(only);
    });
    expect(known.map(([name]) => name).sort(), type).toEqual([...(fields[type] ?? [])].sort());
  }
});

test("a field of another kubelet version is refused where newer fields are, or ignored as in the kubelet", () => {
  const mount = { name: "v", mountPath: "/v", bindMountOptions: ["noexec"] };
  const probe = (protocol: string) => ({ httpGet: { port: 80, protocol } });
  const pods = [
    withContainer({ volumeMounts: [mount] }, { volumes: [{ name: "v", emptyDir: { mode: 0o755 } }] }),
    withContainer({ livenessProbe: probe("HTTP2"), readinessProbe: { grpc: { port: 80, mode: "TLS" } } }),
    withContainer({ livenessProbe: probe("HTTP1"), readinessProbe: { grpc: { port: 80, mode: "Plaintext" } } }),
    podObject({ schedulingGroup: {}, workloadRef: { name: "w" }, evictionResponders: [] }),
  ];
  const reportOf = (version: string) =>
    pods.map((pod) => {
      const read = runnablePod(pod, profileOf(version));
      return read.ok ? [] : read.error.map(({ path, message }) => `${path.replace(/^spec\./, "")}: ${message}`);
    });
  const unknown = (version: string) => `kubelet ${version} has no such field: remove it`;
  expect(reportOf("1.37")).toEqual([
    [
      "volumes[0].emptyDir.mode: the mode of an emptyDir is not set by this daemon: remove it",
      "containers[0].volumeMounts[0].bindMountOptions: options of a mount are not set by this daemon: remove it",
    ],
    [
      "containers[0].livenessProbe.httpGet.protocol: HTTP/2 is not asked: remove it, or set it to HTTP1",
      "containers[0].readinessProbe.grpc.mode: probes are not done over TLS: remove it, or set it to Plaintext",
    ],
    [],
    [],
  ]);
  for (const version of ["1.34", "1.35", "1.36"]) {
    expect(reportOf(version)).toEqual([
      [
        `volumes[0].emptyDir.mode: ${unknown(version)}`,
        `containers[0].volumeMounts[0].bindMountOptions: ${unknown(version)}`,
      ],
      [
        `containers[0].livenessProbe.httpGet.protocol: ${unknown(version)}`,
        `containers[0].readinessProbe.grpc.mode: ${unknown(version)}`,
      ],
      [],
      [],
    ]);
  }
});

test("claims are accepted where DRA drivers are served, and validated as by the API server", () => {
  const reportOf = (resourceClaims: unknown, claims: unknown, draDrivers = true) => {
    const read = runnablePod(withContainer({ resources: { claims } }, { resourceClaims }), null, { draDrivers });
    return read.ok ? [] : read.error.map(({ path, message }) => `${path.replace(/^spec\./, "")}: ${message}`);
  };
  const gpu = { name: "gpu", resourceClaimName: "gpus" };
  expect(reportOf([gpu], [{ name: "gpu" }])).toEqual([]);
  expect(
    reportOf(
      [gpu],
      [
        { name: "gpu", request: "a" },
        { name: "gpu", request: "b" },
      ],
    ),
  ).toEqual([]);
  expect(reportOf([gpu], [{ name: "gpu" }], false)).toEqual(
    ["resourceClaims", "containers[0].resources.claims"].map(
      (path) =>
        `${path}: ResourceClaims are prepared where DRA drivers are served: set \`draDrivers: serve\`, or remove it`,
    ),
  );
  const both = { ...gpu, resourceClaimTemplateName: "t" };
  expect(reportOf([gpu, both, { name: "none" }], [{ name: "gpu" }, { name: "gpu" }, { name: "other" }])).toEqual([
    'resourceClaims[1].name: Duplicate value: "gpu"',
    "resourceClaims[1]: at most one of `resourceClaimName`, `resourceClaimTemplateName` may be specified",
    "resourceClaims[2]: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
    'containers[0].resources.claims[1]: Duplicate value: "gpu"',
    'containers[0].resources.claims[2]: Not found: "other": it is none of the pod\'s `resourceClaims`',
  ]);
});

test("every accepted field has a reason, and every refused field has advice", () => {
  const rules = Object.values(RULES).flatMap((type) => Object.values(type));
  expect(rules.filter((r) => r.kind === "accepted").length).toBeGreaterThan(20);
  for (const rule of rules) {
    if (rule.kind === "accepted") expect(rule.why.length).toBeGreaterThan(10);
    if (rule.kind === "refused") expect(rule.advice).toMatch(/remove|use |write |set |leave|mount|clone|copy/);
  }
});
