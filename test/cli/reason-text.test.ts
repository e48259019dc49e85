import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Facts, Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import type { Reason } from "../../api/model/forms.ts";
import { reasonText } from "../../api/text/tables/index.ts";
import { realCases } from "../decide/admission/real-cases.ts";
import { captured } from "../kit/real-node.ts";
import { manifest } from "./run.ts";
import { storyStep } from "./story.ts";

const json = (file: string) => captured(file);
const yaml = (file: string) => parse(readFileSync(manifest(file), "utf8"));

function answerOf(kind: Kind, input: object, pod: unknown, facts: Facts) {
  const snapshot = decodeSnapshot(input);
  if (!snapshot.ok) throw new Error(snapshot.error[0]?.message);
  const decoded = decodeAsk(kind, { pod });
  const ask = decoded.ok ? decoded.value : undefined;
  const answer = decideKind(kind, { snapshot: snapshot.value, facts, ask, explain: "full" });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value;
}
const reasonsOf = (kinds: readonly Kind[], input: object, pod: unknown): readonly Reason[] =>
  kinds.flatMap((kind) => answerOf(kind, input, pod, {}).reasons.flatMap(({ because }) => because));

function expectSentences(reasons: readonly Reason[]): ReadonlySet<string> {
  for (const reason of reasons) {
    const text = reasonText(reason, false);
    expect(text).not.toMatch(new RegExp(`: ${reason.code}( |$)`));
    expect(text).not.toMatch(/undefined|NaN|null/);
    expect(reasonText(reason, true)).toMatch(new RegExp(` \\[${reason.code}[^\\]]*\\]$`));
  }
  return new Set(reasons.map(({ code }) => code));
}

const MANAGERS = ["cpus", "memory", "topology", "devices"] as const;
const CAPTURED = {
  node: json("node.json"),
  pods: json("pods.json"),
  kubeletConfiguration: json("configz.json"),
  machine: json("machine.json"),
  assignments: { cpu_manager_state: json("cpu_manager_state"), memory_manager_state: json("memory_manager_state") },
};
const GUARANTEED = { ...yaml("trader.yaml"), metadata: { name: "trader" } };

describe("the text of a reason", () => {
  test("is a sentence for every reason of the captured node in both cgroup versions", () => {
    const reasons = [1, 2].flatMap((version) =>
      reasonsOf(["allocatable", "cgroups", ...MANAGERS], { ...CAPTURED, cgroup: { version } }, null),
    );
    expectSentences(reasons);
    expect(reasons.length).toBeGreaterThan(300);
  });

  test("is a sentence for every reason of the managers, for admitted and refused pods", () => {
    const devices = yaml("devices.yaml");
    const plugins = { observedAt: "2026-11-21T06:42:00Z", devices, devicePlugins: yaml("plugins.yaml") };
    const held = storyStep("09-fuse-two");
    const off = { maxPods: 10 };
    const codes = [
      reasonsOf(MANAGERS, CAPTURED, "default/guar-int"),
      reasonsOf(MANAGERS, CAPTURED, "default/besteffort"),
      reasonsOf(MANAGERS, CAPTURED, GUARANTEED),
      reasonsOf(MANAGERS, { ...CAPTURED, kubeletConfiguration: off, assignments: {} }, GUARANTEED),
      reasonsOf(["devices"], { machine: CAPTURED.machine, ...plugins }, yaml("training.yaml")),
      reasonsOf(["devices"], held, null),
      reasonsOf(["devices"], { ...held, ...plugins, observedAt: "2026-11-21T07:40:00Z" }, null),
    ].map(expectSentences);
    expect([...new Set(codes.flatMap((some) => [...some]))].sort()).toEqual([
      "allocatable_raised",
      "device_plugin_removed",
      "devices_given",
      "exclusive_cpus_given",
      "hints_merged",
      "memory_anywhere",
      "memory_given",
      "memory_not_managed",
      "memory_table",
      "no_exclusive_cpus",
      "plugin_not_asked",
      "refused",
      "reserved_cpus",
      "shared_pool",
      "topology_policy",
      "unhealthy_devices",
    ]);
  });

  test("of the device manager is a sentence with its details", () => {
    const of = (code: string, numbers: Reason["numbers"]) =>
      reasonText({ code, field: "f", ...(numbers === undefined ? {} : { numbers }) }, false);
    expect(of("checkpoint_entry_dropped", { container: "c", fault: "malformed", at: "[0].AllocResp" })).toBe(
      "f: what container c held is left out: malformed at [0].AllocResp",
    );
    expect(of("unhealthy_devices", { plugin: "stopped" })).toBe("f: its plugin has stopped: no device counts");
    expect(of("unhealthy_devices", undefined)).toBe("f: unhealthy devices do not count");
    expect(of("devices_given", { from: "unaligned", ids: "a" })).toBe("f: a: on other NUMA nodes than the affinity's");
  });

  test("is a sentence for every reason of a real kubelet's admissions, refusals and preemptions", () => {
    const cases = (["real-admission", "real-preemption"] as const).flatMap(realCases);
    const reasons = cases.flatMap((real) => reasonsOf(["admission", "preemption"], real.snapshot, real.applied));
    expect(expectSentences(reasons)).toEqual(
      new Set([
        "candidates",
        "ended_pods",
        "extended_resource_not_counted",
        "host_port_taken",
        "nearest",
        "node_under_pressure",
        "not_critical",
        "priority_of_class",
        "resource_fits",
        "resource_short",
        "tied",
      ]),
    );
  });

  test("is a sentence for every reason of eviction under pressure, after it, and with inconsistent stats", () => {
    const stats = json("stats-summary.json");
    const stale = { ...stats, pods: stats.pods.slice(1), node: { ...stats.node, rlimit: undefined } };
    stale.node.memory = { ...stale.node.memory, time: "2026-11-21T06:20:00Z" };
    const evictionHard = { "memory.available": "23Gi", "nodefs.available": "64Gi", "pid.available": "5%" };
    const evictionSoft = { "nodefs.available": "60Gi" };
    const config = { evictionHard, evictionSoft, evictionSoftGracePeriod: { "nodefs.available": "2m" } };
    const observedAt = "2026-11-21T06:24:50Z";
    const pressed = { ...CAPTURED, observedAt, stats, kubeletConfiguration: config };
    const first = answerOf("eviction", pressed, null, {});
    const later = { ...pressed, observedAt: "2026-11-21T06:24:40Z", stats: stale, kubeletConfiguration: {} };
    const after = answerOf("eviction", later, null, { eviction: first.next });
    const codes = [first, after].map((answer) => expectSentences(answer.reasons.flatMap(({ because }) => because)));
    expect([...new Set(codes.flatMap((some) => [...some]))].sort()).toEqual([
      "below_threshold",
      "clock_ran_backwards",
      "first_in_rank",
      "in_transition_period",
      "order_is_chance",
      "pod_without_stats",
      "pressure_observed",
      "reclaims_first",
      "samples_after_now",
      "soft_not_above_hard",
      "stats_older_than_snapshot",
      "stats_ran_backwards",
      "threshold_above_capacity",
      "threshold_forgotten",
    ]);
  });

  test("is a sentence for every code in the core", () => {
    const FORMS = [
      /\badd\(\s*"([a-z_]+)"/g,
      /\badd\([^,]*\? "([a-z_]+)" : "([a-z_]+)"/g,
      /\bconst code = [^;]*\? "([a-z_]+)" : "([a-z_]+)"/g,
      /\bcode: "([a-z_]+)", field/g,
    ];
    const root = new URL("../../api/decide/", import.meta.url);
    const codes = globSync("**/*.ts", { cwd: root }).flatMap((file) => {
      const text = readFileSync(new URL(file, root), "utf8");
      return FORMS.flatMap((form) => [...text.matchAll(form)].flatMap(([, ...found]) => found.filter(Boolean)));
    });
    const seen = new Set(codes);
    for (const code of ["kubelet_does_not_start", "resource_fits", "in_transition_period", "local_storage_limit"]) {
      expect(seen).toContain(code);
    }
    expect(seen.size).toBeGreaterThan(80);
    const numbers: Reason["numbers"] = new Proxy({}, { get: () => 1 });
    const silent = [...seen].filter((code) => reasonText({ code, field: "f", numbers }, false) === `f: ${code}`);
    expect(silent).toEqual([]);
  });

  test("about pods and pressure is a sentence with its details", () => {
    const of = (code: string, numbers: Reason["numbers"] = {}) => reasonText({ code, field: "f", numbers }, false);
    expect([
      of("nearest", { qos: "Burstable", open: "cpu 150, memory 1048576, pods 1", distance: 1 / 3, among: 1 }),
      of("taint_not_tolerated", { key: "a", value: undefined, effect: "NoExecute" }),
      of("taint_not_tolerated", { key: "a", value: "b", effect: "NoExecute" }),
      of("tied", { tied: "a/b c/d e/f" }),
      of("preempted_in_vain", { pods: 1, handler: "app-armor" }),
      of("in_grace_period", { graceMs: 90_000, graceLeftMs: 1500 }),
      of("stats_not_newer", { statsAtMs: undefined }),
      of("pressure_observed", { untilMs: 8.65e15 }),
    ]).toEqual([
      "f: the nearest of 1 Burstable pod to what is still to be freed (cpu 150m, memory 1 MiB, pods 1): distance 0.333",
      "f: the node has the taint a:NoExecute, which the pod does not tolerate",
      "f: the node has the taint a=b:NoExecute, which the pod does not tolerate",
      "f: equally near and equally large: a/b, c/d and e/f; a kubelet may preempt any of them, this answer names the last one listed",
      "f: 1 pod preempted in vain: app-armor refuses it after that",
      "f: 1s left of its grace period of 1m30s",
      "f: the stats are those of the last pass: they cause no eviction now",
      "f: a threshold of it is met; True until 8650000000000000 at least",
    ]);
  });

  test("without a sentence is its code and numbers", () => {
    const reason = { code: "brand_new", field: "memory", numbers: { bytes: 1, why: undefined } };
    expect(reasonText(reason, false)).toBe("memory: brand_new bytes=1");
    expect(reasonText({ code: "toString", field: "memory" }, false)).toBe("memory: toString");
  });
});
