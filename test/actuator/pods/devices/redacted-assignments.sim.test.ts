import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { persistNext } from "../../../../actuator/pods/admission/device-reallocator.ts";
import { writeCheckpoint } from "../../../../api/decide/devices/checkpoint.ts";
import { readCheckpoint } from "../../../../api/decide/devices/checkpoint-read.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy } from "../../deviceplugin/node-plugin.ts";
import { type Amounts, SimulatedPodsNode, appPod as worldPod } from "../node/simulated-node.ts";
import { decided, entriesIn, entry, GPU, hold, joined, nodeWith, ONE } from "./manager-kit.ts";

/** The encoded variable TOKEN=hunter2 */
const SECRET = Buffer.from("\n\x10\n\x05TOKEN\x12\x07hunter2", "latin1").toString("base64");
const EMPTY = writeCheckpoint({ entries: null, registered: null });

test("the redacted checkpoint shows which pods hold which devices, without the plugins' answers", async () => {
  const node = await nodeWith();
  hold(node.files, entry("p", ["a"], SECRET), entry("q", ["b"]));
  const text = node.files.redacted().assignments?.["kubelet_internal_checkpoint"] ?? "";
  const read = readCheckpoint(text);
  expect(read).toMatchObject({ ok: true, value: { entries: [entry("p", ["a"], ""), entry("q", ["b"])] } });
  expect(text).not.toContain(SECRET);
  expect(node.files.redacted()).toBe(node.files.redacted());
});

test("an unreadable checkpoint is left out, since it may hold anything", async () => {
  const node = await nodeWith();
  hold(node.files, entry("p", ["a"], SECRET));
  node.files.persist({ assignments: { kubelet_internal_checkpoint: `{broken ${SECRET}` } });
  expect(node.files.redacted().assignments).toBeUndefined();
});

test("the plugins' answers are put back into what a decision returns", async () => {
  const node = await nodeWith();
  await joined(node, { resource: GPU, devices: healthy("a", "b", "c") });
  hold(node.files, entry("p", ["a"], SECRET));
  const [p, q] = [limited("p", ONE), limited("q", ONE)];
  const { next } = decided(node, q, [p]);
  expect(JSON.stringify(next)).not.toContain(SECRET);
  for (const devices of [node.manager, undefined]) {
    expect(persistNext({ files: node.files, ...(devices && { devices }) }, next)).toMatchObject({ ok: true });
    expect(entriesIn(node)).toEqual([entry("p", ["a"], SECRET), entry("q", ["b"])]);
  }
  // a pod that holds other devices by now, or none, gets no stored answer: its plugin must be called again
  node.files.persist({ assignments: { kubelet_internal_checkpoint: EMPTY } });
  persistNext({ files: node.files, devices: node.manager }, next);
  expect(entriesIn(node)).toEqual([entry("p", ["a"]), entry("q", ["b"])]);
});

test("no request or report to the API contains the plugins' answers", async () => {
  const asked: string[] = [];
  const world = new SimulatedPodsNode({
    client: (client) => ({
      ...client,
      decide: (kind, snapshot, ask) => {
        asked.push(JSON.stringify({ kind, snapshot, ask }));
        return client.decide(kind, snapshot, ask);
      },
      report: async (report) => void asked.push(JSON.stringify(report)),
    }),
  });
  const file = join(world.dir, "state/managers/device-plugins/kubelet_internal_checkpoint");
  const amounts: Amounts = { cpu: "1" };
  world.pods = [worldPod("p", amounts)];
  await world.run(2);
  const { files } = await nodeWith();
  hold(files, entry("p", ["a"], SECRET), entry("gone", ["b"], SECRET));
  const text = files.read().assignments?.["kubelet_internal_checkpoint"] ?? "";
  world.write(text);
  world.restart();
  world.pods = [worldPod("p", amounts), worldPod("q", amounts)];
  await world.run(70);
  expect(asked.some((one) => one.includes("kubelet_internal_checkpoint"))).toBe(true);
  expect(asked.filter((one) => one.includes(SECRET) || one.includes("hunter2"))).toEqual([]);
  const kept = readCheckpoint(readFileSync(file, "utf8"));
  expect(kept.ok && kept.value.entries?.find(({ podUid }) => podUid === "p")?.allocResp).toBe(SECRET);
});
