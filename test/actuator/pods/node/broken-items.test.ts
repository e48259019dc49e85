import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { actuatorConfig } from "../../../../actuator/core/config.ts";
import { podsSource } from "../../../../actuator/manifests/pods-source.ts";
import { refusalOf } from "../../../../actuator/pods/records/desired-pods.ts";
import { scratch } from "../../manifests/scratch.ts";
import { SIM_SETTINGS } from "./settings.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const NODE = SIM_SETTINGS.nodeName;
const sourceOf = (settings: { readonly manifests?: string; readonly podsUrl?: string }) => {
  const config = actuatorConfig({ ...settings, nodeName: NODE, stateDir: "unused" });
  if (!config.ok) throw new Error(config.error);
  return podsSource(config.value);
};
const listText = (items: readonly unknown[]): string =>
  JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "7" }, items });
interface Item {
  readonly metadata: object;
  readonly spec: object;
}
/** A world whose pod source is a URL that answers with this text. */
async function worldOfUrl(items: readonly unknown[]) {
  const answer = { text: listText(items) };
  const server = createServer((_request, response) => void response.end(answer.text));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const world = new SimulatedPodsNode({ readPods: sourceOf({ podsUrl: `http://127.0.0.1:${port}/pods` }) });
  return { world, answer };
}

const [web, beside] = [appPod("web", {}), appPod("beside", {})] as unknown as readonly [Item, Item];
const broken = { ...web.spec, containers: [{ name: "c", image: "busybox:1", wanted: true }] };
const itemWith = (metadata: object, spec: object = broken): unknown => ({
  ...web,
  metadata: { ...web.metadata, ...metadata },
  spec,
});

const states = (world: SimulatedPodsNode): readonly string[] =>
  [...world.manager.set.all()].map(({ uid, record }) => `${uid} ${record.state}`).sort();
const containersOf = (world: SimulatedPodsNode) =>
  [...(world.manager.set.runtimePods?.values() ?? [])]
    .flatMap(({ containers }) => containers.map(({ id, state }) => `${id} ${state}`))
    .sort();
/** The problems as `nodewise pods` and the log show them. */
const reportOf = (world: SimulatedPodsNode): string =>
  [...(world.last?.problems ?? []), ...(world.last?.refused.map(refusalOf) ?? [])]
    .map(({ message }) => message)
    .join("\n");

test.each([
  ["its uid and name", itemWith({}), "default/web stays as it was read last: default/web, of this uid, cannot be run"],
  [
    "its uid and another name",
    itemWith({ name: "other" }),
    "default/web stays as it was read last: default/other, of this uid, cannot be run",
  ],
  ["its uid and no name", itemWith({ name: undefined }), "items[0] has no metadata.name: no pod counts as gone"],
  [
    "its uid and a namespace that is no text",
    itemWith({ namespace: 7 }),
    "default/web stays as it was read last: ?/web, of this uid, cannot be run",
  ],
  ["its name and no uid", itemWith({ uid: undefined }), "items[0] has no metadata.uid: no pod counts as gone"],
  [
    "its name and another uid",
    itemWith({ uid: "another" }),
    "default/web stays as it was read last: default/web cannot be run",
  ],
  ["no spec", itemWith({}, undefined as unknown as object), "default/web, of this uid, cannot be run"],
  ["no object", 7, "items[0] has no metadata.uid and no metadata.name: no pod counts as gone"],
])("a list item with %s that cannot be run does not end the pod", async (_, item, words) => {
  const { world, answer } = await worldOfUrl([web, beside]);
  await world.run(5);
  expect(states(world)).toEqual(["beside active", "web active"]);
  const before = containersOf(world);
  answer.text = listText([item, beside]);
  await world.run(40);
  expect(states(world)).toEqual(["beside active", "web active"]);
  expect(containersOf(world)).toEqual(before);
  expect(reportOf(world)).toContain(words);
  // a restart of the daemon changes nothing either
  world.restart();
  await world.run(40);
  expect(containersOf(world)).toEqual(before);
  answer.text = listText([beside]);
  await world.run(60);
  expect(states(world)).toEqual(["beside active"]);
});

test("an item that cannot be run does not affect others: new pods start and removed pods end", async () => {
  const { world, answer } = await worldOfUrl([web, beside]);
  await world.run(5);
  answer.text = listText([itemWith({ name: "other" }), appPod("new", {})]);
  await world.run(60);
  expect(states(world)).toEqual(["new active", "web active"]);
  expect(reportOf(world)).toContain("default/other is not run: spec.containers[0].wanted: no such field");
});

test("a pod whose new spec cannot be run can be deleted, and starts again once the spec is corrected", async () => {
  const { world, answer } = await worldOfUrl([web, beside]);
  await world.run(5);
  answer.text = listText([
    itemWith({ deletionTimestamp: "2026-01-31T12:00:00Z", deletionGracePeriodSeconds: 1 }),
    beside,
  ]);
  await world.run(60);
  expect(states(world)).toEqual(["beside active"]);
  answer.text = listText([web, beside]);
  await world.run(10);
  expect(states(world)).toEqual(["beside active", "web active"]);
});

test("a truncated list, from a URL or a file, ends no pod", async () => {
  const text = listText([web, beside]);
  const { world, answer } = await worldOfUrl([web, beside]);
  await world.run(5);
  for (const length of [0, 1, text.length >> 1, text.length - 1]) {
    answer.text = text.slice(0, length);
    await world.run(40);
    expect(states(world)).toEqual(["beside active", "web active"]);
    expect(reportOf(world)).toMatch(/pods: .*JSON|JSON/);
  }
  const file = join(scratch({ "pods.json": text }), "pods.json");
  let readPods = sourceOf({ manifests: file });
  const filed = new SimulatedPodsNode({ readPods: (inForce) => readPods(inForce) });
  await filed.run(5);
  expect(states(filed)).toEqual(["beside active", "web active"]);
  for (const isRestarted of [false, true])
    for (const length of [0, 1, text.length >> 1, text.length - 1]) {
      writeFileSync(file, text.slice(0, length));
      if (isRestarted) {
        readPods = sourceOf({ manifests: file });
        filed.restart();
      }
      await filed.run(40);
      expect(states(filed)).toEqual(["beside active", "web active"]);
      expect(reportOf(filed)).toContain("pods.json");
    }
});

test.each([
  ["its uid and name", itemWith({})],
  ["its uid and another name", itemWith({ name: "other" })],
  ["its name and no uid", itemWith({ uid: undefined })],
  ["its uid and no spec", itemWith({}, undefined as unknown as object)],
  ["its uid and a name that is no text", itemWith({ name: 7 })],
])("a manifest with %s that cannot be run and has moved to another file ends no pod", async (_, item) => {
  const directory = scratch({ "a.json": listText([web, beside]), "b.json": listText([]) });
  const world = new SimulatedPodsNode({ readPods: sourceOf({ manifests: directory }) });
  await world.run(5);
  expect(states(world)).toEqual(["beside active", "web active"]);
  writeFileSync(join(directory, "b.json"), listText([item]));
  writeFileSync(join(directory, "a.json"), listText([beside]));
  await world.run(60);
  expect(states(world)).toEqual(["beside active", "web active"]);
  expect(reportOf(world)).toMatch(/default\/web-\S+ stays as it was read last: /);
  writeFileSync(join(directory, "b.json"), listText([]));
  await world.run(60);
  expect(states(world)).toEqual(["beside active"]);
});

const named = (name: string, uid: string, metadata: object = {}) =>
  appPod(uid, {}, { metadata: { name, ...metadata } });
const [a, b, e] = [named("a", "1"), named("b", "2"), named("e", "8")];
const GOES = { deletionTimestamp: "2026-01-31T12:00:00Z", deletionGracePeriodSeconds: 1 };

test.each([
  ["beside it", [a, b, named("e", "1")]],
  ["before it", [named("e", "1"), a, b]],
  ["in its place", [b, named("e", "1")]],
  ["of which both are to go, beside it", [named("a", "1", GOES), b, named("e", "1", GOES)]],
  ["that is to go, in its place", [b, named("e", "1", GOES)]],
  ["that is to go and cannot be run, in its place", [b, itemWith({ name: "e", uid: "1", ...GOES })]],
  ["that cannot be run, beside it", [a, b, itemWith({ name: "e", uid: "1" })]],
])(
  "an item with one pod's name and another pod's uid, %s, ends neither pod, and both are reported",
  async (_, items) => {
    const { world, answer } = await worldOfUrl([a, b, e]);
    await world.run(5);
    const all = ["1 active", "2 active", "8 active"];
    expect(states(world)).toEqual(all);
    const before = containersOf(world);
    answer.text = listText(items);
    for (const isRestarted of [false, true]) {
      if (isRestarted) world.restart();
      await world.run(40);
      expect([states(world), containersOf(world)]).toEqual([all, before]);
      expect(reportOf(world)).toContain("default/a");
      expect(reportOf(world)).toMatch(/^default\/e stays as it was read last: /m);
    }
    // an item that is valid again takes effect again
    answer.text = listText([a, b]);
    await world.run(60);
    expect(states(world)).toEqual(["1 active", "2 active"]);
  },
);

test("a manifest that takes another pod's uid ends neither pod, and both are reported", async () => {
  const text = (name: string, uid: string) => JSON.stringify(named(name, uid));
  const directory = scratch({ "a.json": text("a", "1"), "e.json": text("e", "8") });
  const world = new SimulatedPodsNode({ readPods: sourceOf({ manifests: directory }) });
  await world.run(5);
  const [all, before] = [states(world), containersOf(world)];
  expect(all).toEqual(["1 active", "8 active"]);
  writeFileSync(join(directory, "e.json"), text("e", "1"));
  for (const isRestarted of [false, true]) {
    if (isRestarted) world.restart();
    await world.run(40);
    expect([states(world), containersOf(world)]).toEqual([all, before]);
    expect(reportOf(world)).toMatch(
      /default\/e-\S+ stays as it was read last: default\/e-\S+ stands there with the uid of default\/a-/,
    );
    expect((world.last?.notices ?? []).map(({ message }) => message).join()).toContain("has the uid of pod default/a-");
  }
});
