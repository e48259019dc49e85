import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { reasonText } from "../../api/cli/reason-text.ts";
import { decideKind } from "../../api/decide/index.ts";
import { decodeAsk } from "../../api/model/asks.ts";
import type { Kind, Reason } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { manifest, realNode } from "./run.ts";
import { storyStep } from "./story.ts";

const json = (file: string) => JSON.parse(readFileSync(realNode(file), "utf8"));
const yaml = (file: string) => parse(readFileSync(manifest(file), "utf8"));

function reasonsOf(kinds: readonly Kind[], input: object, pod: unknown): readonly Reason[] {
  const snapshot = decodeSnapshot(input);
  if (!snapshot.ok) throw new Error(snapshot.error[0]?.message);
  return kinds.flatMap((kind) => {
    const decoded = decodeAsk(kind, { pod });
    const ask = decoded.ok ? decoded.value : undefined;
    const answer = decideKind(kind, { snapshot: snapshot.value, facts: {}, ask, explain: "full" });
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value.reasons.flatMap(({ because }) => because);
  });
}

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

describe("a reason", () => {
  test("is a sentence, for every reason of the captured node in both cgroup versions", () => {
    const reasons = [1, 2].flatMap((version) =>
      reasonsOf(["allocatable", "cgroups", ...MANAGERS], { ...CAPTURED, cgroup: { version } }, null),
    );
    expectSentences(reasons);
    expect(reasons.length).toBeGreaterThan(300);
  });

  test("is a sentence, for every reason of the managers, of pods that come in and pods that do not", () => {
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

  test("of device managers is a sentence with what it stands on", () => {
    const of = (code: string, numbers: Reason["numbers"]) =>
      reasonText({ code, field: "f", ...(numbers === undefined ? {} : { numbers }) }, false);
    expect(of("checkpoint_entry_dropped", { container: "c", fault: "malformed", at: "[0].AllocResp" })).toBe(
      "f: what container c held is left out: malformed at [0].AllocResp",
    );
    expect(of("unhealthy_devices", { plugin: "stopped" })).toBe("f: its plugin has stopped: no device counts");
    expect(of("unhealthy_devices", undefined)).toBe("f: unhealthy devices do not count");
    expect(of("devices_given", { from: "unaligned", ids: "a" })).toBe("f: a: on other NUMA nodes than the affinity's");
  });

  test("without a sentence shows its code and numbers", () => {
    const reason = { code: "brand_new", field: "memory", numbers: { bytes: 1, why: undefined } };
    expect(reasonText(reason, false)).toBe("memory: brand_new bytes=1");
    expect(reasonText({ code: "toString", field: "memory" }, false)).toBe("memory: toString");
  });
});
