import { describe, expect, test } from "vitest";
import { mergePatch } from "../../../api/base/merge-patch.ts";
import { lintConfiguration } from "../../../api/decide/lint/lint.ts";

const POLICY = "imagePullCredentialsVerificationPolicy";
const LIST = "preloadedImagesVerificationAllowlist";
const OF_LIST = "NeverVerifyAllowlistedImages";

/** test/decide/lint/kubelet-words.test.ts checks the kubelet's messages; this file checks the field and the fix. */
describe("a kubelet does not start", () => {
  test.each<[object, string, string, unknown]>([
    [{ allowedUnsafeSysctls: ["net.*", "foo.bar"] }, "sysctl-of-node", "allowedUnsafeSysctls[1]", null],
    [{ allowedUnsafeSysctls: ["net.*.x"] }, "cannot-parse", "allowedUnsafeSysctls[0]", null],
    [{ logging: { format: "xml" } }, "unknown-value", "logging.format", { logging: { format: null } }],
    [{ logging: { format: "JSON" } }, "unknown-value", "logging.format", { logging: { format: "json" } }],
    [
      { logging: { flushFrequency: "-5s" } },
      "out-of-range",
      "logging.flushFrequency",
      { logging: { flushFrequency: null } },
    ],
    [{ logging: { vmodule: [{ filePattern: "a,b" }] } }, "cannot-parse", "logging.vmodule[0]", null],
    [{ tlsMinVersion: "foo" }, "unknown-value", "tlsMinVersion", null],
    // the value differs in one letter from four known values
    [{ tlsMinVersion: "VersionTLS14" }, "unknown-value", "tlsMinVersion", null],
    [{ tlsMinVersion: "TLSv1.2" }, "unknown-value", "tlsMinVersion", { tlsMinVersion: "VersionTLS12" }],
    [{ tlsCipherSuites: ["x"] }, "unknown-value", "tlsCipherSuites[0]", null],
    [{ tlsCurvePreferences: [29, 29] }, "unknown-value", "tlsCurvePreferences[1]", null],
    [
      { showHiddenMetricsForVersion: "1.0" },
      "unknown-value",
      "showHiddenMetricsForVersion",
      { showHiddenMetricsForVersion: null },
    ],
    [{ registerWithTaints: [{ key: "a", effect: "Foo" }] }, "invalid-taint", "registerWithTaints[0].effect", null],
    [{ registerWithTaints: [{ key: "a b" }] }, "invalid-taint", "registerWithTaints[0].key", null],
    [
      { registerWithTaints: [{ key: "a", timeAdded: "2024-01-02T03:04:05Z" }] },
      "taint-time",
      "registerWithTaints[0].timeAdded",
      null,
    ],
    [{ [LIST]: ["registry.io/a"] }, "allowlist-without-policy", LIST, null],
    [{ [POLICY]: OF_LIST, [LIST]: ["a", "b:1"] }, "cannot-parse", `${LIST}[1]`, null],
    [{ [POLICY]: "neververify" }, "unknown-value", POLICY, null],
    [
      { tracing: { endpoint: "http://localhost:4317" } },
      "cannot-parse",
      "tracing.endpoint",
      { tracing: { endpoint: "localhost:4317" } },
    ],
    [
      { authorization: { mode: "webhook" } },
      "unknown-value",
      "authorization.mode",
      { authorization: { mode: "Webhook" } },
    ],
  ])("with %j", (configuration, code, field, fix) => {
    const [found, ...more] = lintConfiguration(configuration);
    expect(more).toEqual([]);
    expect(found).toMatchObject({ code, severity: "refuses-start", field, kubelet: true, fix });
  });

  // NewMainKubelet checks this field itself, without a function that a recording could call
  test("with an unknown configMapAndSecretChangeDetectionStrategy", () => {
    const field = "configMapAndSecretChangeDetectionStrategy";
    expect(lintConfiguration({ [field]: "watch" })).toMatchObject([
      { field, message: "unknown configmap and secret manager mode: watch", fix: { [field]: "Watch" } },
    ]);
    for (const known of ["Get", "Cache", "Watch", ""]) expect(lintConfiguration({ [field]: known })).toEqual([]);
  });
  test("with a taint whose timeAdded is no time, in our own words", () => {
    const [found] = lintConfiguration({ registerWithTaints: [{ key: "a", timeAdded: "yesterday" }] });
    expect(found).toMatchObject({ code: "taint-time", severity: "refuses-start", kubelet: false });
  });
  test("with a very long invalid image pattern, found within seconds", () => {
    for (const text of ["a", "a-", "a.", "a_", "a/", "A"].map((part) => `${part.repeat(20_000)}!`)) {
      const found = lintConfiguration({ [POLICY]: OF_LIST, [LIST]: [text] });
      expect(found[0]?.message).toContain("invalid reference format");
    }
  }, 5000);
});

test.each([
  [["pod"], ["pods"]],
  [["pod", "Pods"], ["pods"]],
  [["system-reservd"], ["pods", "system-reserved"]],
  [
    ["kube-reserved", "kube-reserved"],
    ["pods", "kube-reserved"],
  ],
  [["foo"], null],
  [["non"], null],
  [["kube-reserved", "kube-reserved-compressible"], null],
])("enforceNodeAllocatable %j has the fix %j, which the kubelet accepts, or none", (given, wanted) => {
  const configuration = { enforceNodeAllocatable: given };
  const found = lintConfiguration(configuration).find(({ code }) => code === "pods-not-enforced");
  expect(found?.fix).toEqual(wanted && { enforceNodeAllocatable: wanted });
  if (wanted === null) return;
  const after = lintConfiguration(mergePatch(configuration, found?.fix) as object);
  expect(after.filter(({ field }) => field === "enforceNodeAllocatable")).toEqual([]);
});

test.each([
  ["5", { evictionHard: { "memory.availble": null } }],
  // the value of the wrong type has no meaning, so the misspelt entry's value may replace it
  ["true", { evictionHard: { "memory.availble": null, "memory.available": "5%" } }],
])("a value %s of the wrong type does not hide faults of the entries beside it", (text, fix) => {
  const evictionHard = { "memory.available": JSON.parse(text) as unknown, "memory.availble": "5%" };
  const found = lintConfiguration({ evictionHard }).filter(({ severity }) => severity === "refuses-start");
  expect(found.map(({ field, code }) => [field, code])).toEqual([
    ['evictionHard["memory.available"]', "wrong-type"],
    ['evictionHard["memory.availble"]', "unknown-signal"],
  ]);
  expect(found[1]?.fix).toEqual(fix);
});
