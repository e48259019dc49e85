import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { joinedPatch } from "../../api/base/merge-patch.ts";
import type { Fields } from "../../api/base/own.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { configurationSet } from "../../api/documents/configuration-set.ts";
import type { Kind } from "../../api/model/decision.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { profileIn } from "../../api/profiles/index.ts";
import { sidesOf } from "../../api/service/what-if.ts";
import { allocatableOf } from "../decide/ask.ts";
import { pod } from "../kit/pods.ts";
import { decoded, type Json } from "../kit/snapshots.ts";
import { type Draws, draws, Met } from "./draws.ts";
import { randomNode } from "./random-node.ts";

const SEED = 4100;
const COUNT = 400;

/** Fields, and for each value the text that a user writes and the value in a configuration. */
const SETTINGS: readonly (readonly [
  path: readonly string[],
  values: readonly (readonly [text: string, value: unknown])[],
])[] = [
  [
    ["kubeReserved", "cpu"],
    [
      ["500m", "500m"],
      ["2", "2"],
      ["90", "90"],
    ],
  ],
  [
    ["kubeReserved", "memory"],
    [
      ["1Gi", "1Gi"],
      ["1500M", "1500M"],
    ],
  ],
  [["systemReserved", "pid"], [["100", "100"]]],
  [["systemReserved", "ephemeral-storage"], [["2Gi", "2Gi"]]],
  [
    ["evictionHard", "memory.available"],
    [
      ["7%", "7%"],
      ["1Gi", "1Gi"],
    ],
  ],
  [["evictionHard", "nodefs.available"], [["20%", "20%"]]],
  [["mergeDefaultEvictionSettings"], [["true", true]]],
  [
    ["maxPods"],
    [
      ["7", 7],
      ["250", 250],
    ],
  ],
  [["podsPerCore"], [["3", 3]]],
  [
    ["podPidsLimit"],
    [
      ["77", 77],
      ["-1", -1],
    ],
  ],
  [["cpuCFSQuota"], [["false", false]]],
  [["cpuCFSQuotaPeriod"], [["20ms", "20ms"]]],
  [
    ["enforceNodeAllocatable"],
    [
      ["pods", ["pods"]],
      ["[none]", ["none"]],
      ["", []],
    ],
  ],
  [
    ["featureGates", "MemoryQoS"],
    [
      ["true", true],
      ["false", false],
    ],
  ],
  [["memorySwap", "swapBehavior"], [["LimitedSwap", "LimitedSwap"]]],
  [["localStorageCapacityIsolation"], [["false", false]]],
];

interface Change {
  readonly path: readonly string[];
  readonly text: string;
  /** Undefined: the field is removed. */
  readonly value: unknown;
}
function drawn(d: Draws): Change {
  const [path, values] = d.pick(SETTINGS);
  const [text, value] = d.chance(5) ? ["null", undefined] : d.pick(values);
  const spelled = path.map((name, i) => {
    const plain = i === 0 ? name : `.${name}`;
    if (!name.includes(".") || i === 0) return plain;
    return d.pick([`["${name}"]`, `['${name}']`, `[${name}]`, `.${name.replaceAll(".", "\\.")}`, plain]);
  });
  return { path, text: `${spelled.join("")}=${text}`, value };
}

/** The configuration with a value at a path, computed without any of the tested code. */
function changedBy(configuration: Json, { path: [first = "", second], value }: Change): Json {
  const copy = structuredClone(configuration);
  if (second === undefined) {
    if (value === undefined) delete copy[first];
    else copy[first] = value;
    return copy;
  }
  const inner = { ...(copy[first] as Json | undefined) };
  if (value === undefined) delete inner[second];
  else inner[second] = value;
  return { ...copy, [first]: inner };
}

/** The node with a configuration, and the status that a kubelet started with `reported` writes. */
function nodeWith(input: Json, kubeletConfiguration: Json, reported: Json): Json {
  const { capacity, allocatable } = allocatableOf({ ...input, kubeletConfiguration: reported }).decision;
  const node = input["node"] as { readonly metadata: Json };
  return { ...input, kubeletConfiguration, node: { ...node, status: { capacity, allocatable } } };
}
const starts = (input: Json, kubeletConfiguration: Json): boolean =>
  allocatableOf({ ...input, kubeletConfiguration }).verdict === "decided";

const ASKED = pod("new", { metadata: { namespace: "what", uid: "u-what-if" } });
/** Every kind for which the random nodes contain enough; a refusal is also an answer. */
const KINDS: readonly Kind[] = ["allocatable", "cgroups", "admission", "eviction"];
function answers(snapshot: Snapshot): readonly unknown[] {
  return KINDS.map((kind) => {
    const ask = decodeAsk(kind, kind === "admission" ? { pod: ASKED } : null);
    if (!ask.ok) throw new Error(JSON.stringify(ask.error));
    return decideKind(kind, { snapshot, facts: {}, ask: ask.value, explain: "off" });
  });
}

describe(`--set on ${COUNT} random nodes from seed ${SEED}`, { timeout: 120_000 }, () => {
  test("is answered like the whole changed configuration, on the node as its kubelet would report it", () => {
    const met = new Met();
    for (let seed = SEED; seed < SEED + COUNT; seed++) {
      const d = draws(seed);
      const input = randomNode(seed);
      const was = input["kubeletConfiguration"] as Json;
      const changes = Array.from({ length: 1 + d.below(3) }, () => drawn(d));
      const snapshot = decoded(nodeWith(input, was, was));
      const profile = profileIn(snapshot);
      let patch: Fields = {};
      for (const { text } of changes) {
        const set = configurationSet(text, profile);
        if (!set.ok) throw new Error(`${text}: ${set.error}`);
        const joined = joinedPatch(patch, set.value.patch);
        if (!joined.ok) throw new Error(joined.error);
        patch = joined.value;
      }
      const sides = sidesOf(snapshot, { kubeletConfigurationPatch: patch }, profile);
      if (!sides.ok) throw new Error(JSON.stringify(sides.error));
      const is = changes.reduce(changedBy, was);
      // a kubelet that does not start writes no status
      const reports = starts(input, was) && starts(input, is);
      const whole = decoded(nodeWith(input, is, reports ? is : was));
      const message = `seed ${seed}: ${changes.map(({ text }) => text).join(" ")}`;
      const [before, after] = [answers(sides.value.before), answers(sides.value.after)];
      if (!isDeepStrictEqual(after, answers(whole))) expect(after, message).toEqual(answers(whole));
      if (!isDeepStrictEqual(before, answers(snapshot))) expect(before, message).toEqual(answers(snapshot));
      for (const [i, kind] of KINDS.entries())
        if (kind !== "eviction") met.note(`${kind} differs`, !isDeepStrictEqual(before[i], after[i]));
      met.note("a kubelet that does not start any more", starts(input, was) && !starts(input, is));
      met.note(
        "a field goes",
        changes.some(({ value }) => value === undefined),
      );
    }
    expect(met.hardly(10)).toEqual([]);
  });
});
