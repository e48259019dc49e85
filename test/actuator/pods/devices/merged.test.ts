import { describe, expect, test } from "vitest";
import { writeCheckpoint } from "../../../../api/decide/devices/checkpoint.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy } from "../../deviceplugin/node-plugin.ts";
import {
  ANSWER,
  checkpointIn,
  decided,
  entriesIn,
  entry,
  GPU,
  hold,
  joined,
  letIn,
  nodeWith,
  ONE,
  RUNNING,
} from "./manager-kit.ts";

describe("merged", () => {
  const textOf = (next: unknown) =>
    (next as { assignments: Record<string, string> }).assignments["kubelet_internal_checkpoint"];

  test("keeps a plugin's answer that came after the decision was requested", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a", "b") });
    const [first, second] = [limited("first", ONE), limited("second", ONE)];
    letIn(node, first);
    const { next } = decided(node, second, [first]);
    expect(await node.manager.allocate(first, RUNNING)).toMatchObject({ ok: true });
    const response = entriesIn(node)[0]?.allocResp;
    expect(response).not.toBeNull();
    expect(node.files.persist(node.manager.withResponses(next)).ok).toBe(true);
    expect(entriesIn(node)).toEqual([entry("first", ["a"], response ?? null), entry("second", ["b"])]);
  });

  test("does not bring back devices released since, but lets the next decision allocate them again", async () => {
    const node = await nodeWith();
    const answers = { Allocate: () => new Error("not now") };
    await joined(node, { resource: GPU, devices: healthy("a", "b"), answers });
    const [first, second] = [limited("first", ONE), limited("second", ONE)];
    letIn(node, first);
    const { next } = decided(node, second, [first]);
    expect(await node.manager.allocate(first, RUNNING)).toMatchObject({ ok: false });
    node.files.persist(node.manager.withResponses(next));
    expect(entriesIn(node)).toEqual([entry("second", ["b"])]);
    letIn(node, first, [second]);
    expect(entriesIn(node).map(({ podUid }) => podUid)).toEqual(["second", "first"]);
  });

  test("leaves anything that is no checkpoint, or changes nothing, as it is", async () => {
    const node = await nodeWith();
    for (const next of [
      null,
      undefined,
      {},
      { assignments: {} },
      { assignments: { kubelet_internal_checkpoint: "x" } },
    ])
      expect(node.manager.withResponses(next)).toBe(next);
    const text = writeCheckpoint({ entries: [entry("p", ["a"])], registered: null });
    const next = { assignments: { kubelet_internal_checkpoint: text, cpu_manager_state: "{}" }, more: 1 };
    expect(node.manager.withResponses(next)).toBe(next);
    hold(node.files, entry("p", ["a"], ANSWER));
    expect(node.manager.withResponses(next)).toMatchObject({ assignments: { cpu_manager_state: "{}" }, more: 1 });
    // the decision allocates no new device: there is nothing to write
    expect(textOf(node.manager.withResponses(next))).toBeUndefined();
    expect(checkpointIn(node.files).entries).toHaveLength(1);
  });
});
