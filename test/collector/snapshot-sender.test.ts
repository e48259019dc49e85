import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { apiClient } from "../../api/collector/api-client.ts";
import { SnapshotSender } from "../../api/collector/snapshot-sender.ts";
import type { Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { RETRY_TURNS_MS } from "../../api/model/turn.ts";
import { epochMs } from "../../api/model/units.ts";
import { seriesOf } from "../../db/rows.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { snapshot as captured } from "../actuator/answered.ts";
import { appOver } from "../api/serving.ts";
import { timeAt } from "../contract/gc-snapshots.ts";
import { value } from "../contract/store-rows.ts";
import { pod } from "../kit/pods.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { draws, Met } from "../properties/draws.ts";

type Json = Readonly<Record<string, unknown>>;
const KINDS: readonly Kind[] = ["allocatable", "eviction"];

/** The turns that a collector sends to the real API. */
class World {
  /** `PATH [whole|changes] [holding] STATUS` of each request. */
  readonly requests: string[] = [];
  hasTurns = true;
  isAway = false;
  isAnswerLost = false;
  /** The body of the last request. */
  text = "";
  seconds = 0;
  store = value(openNode({ file: ":memory:" }));
  turns!: SnapshotSender;
  #app = this.#openApp();

  constructor() {
    this.restart();
  }
  #openApp() {
    return appOver({ store: this.store, now: () => epochMs(Date.parse(timeAt(this.seconds))) }).app;
  }
  restart(): void {
    const client = apiClient({
      url: "http://api.sim",
      token: async () => ({ ok: true, value: undefined }),
      fetch: this.#fetch,
    });
    this.turns = new SnapshotSender(client.send);
  }
  restartApi(): void {
    this.#app = this.#openApp();
  }
  loseHistory(): void {
    this.store = value(openNode({ file: ":memory:" }));
    this.restartApi();
  }
  readonly #fetch = async (request: Request): Promise<Response> => {
    if (this.isAway) throw new TypeError("fetch failed");
    const { pathname } = new URL(request.url);
    const text = await request.clone().text();
    this.text = text;
    const isTurn = pathname.endsWith("/turns");
    const response =
      isTurn && !this.hasTurns ? Response.json({ code: "not_found" }, { status: 404 }) : await this.#app.fetch(request);
    const how = !isTurn ? "" : text.startsWith('{"base"') ? " changes" : " whole";
    const holds = text.includes('"holds"') ? " holding" : "";
    this.requests.push(`${pathname.slice(4)}${how}${holds} ${response.status}`);
    if (this.isAnswerLost) throw new TypeError("fetch failed");
    return response;
  };
  /** Sends a turn. Returns the number of decisions, or the reason why there are none. */
  async send(node: string, snapshot: Json, kinds = KINDS): Promise<number | string> {
    const taken = await this.turns.send(node, snapshot, kinds);
    return taken.ok ? taken.value.decisions : `${taken.error.code}: ${taken.error.message}`;
  }
  take = (): readonly string[] => this.requests.splice(0);
}
/** The captured pods as new objects. */
const podsOn = (nodeName: string): readonly Json[] =>
  captured.pods.map((one: { readonly spec: Json }) => structuredClone({ ...one, spec: { ...one.spec, nodeName } }));
const nodeNamed = (name: string, seconds: number, over: Json = {}): Json => ({
  observedAt: timeAt(seconds),
  node: { ...captured.node, metadata: { ...captured.node.metadata, name } },
  kubeletConfiguration: captured.kubeletConfiguration,
  pods: { kind: "List", items: podsOn(name) },
  stats: { ...captured.stats, node: { ...captured.stats.node, nodeName: name } },
  ...over,
});

const statsIn = (text: string): unknown => {
  const { snapshot, changes } = JSON.parse(text);
  return (snapshot ?? changes.set).stats;
};

let world: World;
beforeEach(() => {
  world = new World();
});

test("a node's snapshot is sent whole once and then as changes, without repeated decisions", async () => {
  expect(await world.send("n1", nodeNamed("n1", 0))).toBe(2);
  expect(await world.send("n1", nodeNamed("n1", 60))).toBe(2);
  expect(await world.send("n1", nodeNamed("n1", 120), [])).toBe(0);
  expect(await world.send("n1", nodeNamed("n1", 180), ["allocatable"])).toBe(1);
  expect(world.take()).toEqual([
    "nodes/n1/turns whole 200",
    "nodes/n1/turns changes holding 200",
    "nodes/n1/turns changes 200",
    "nodes/n1/turns changes 200",
  ]);
  const latest = value(await world.store.getNode("n1"));
  const stored = value(await world.store.getSnapshot(latest?.lastSnapshotId ?? ""));
  expect(JSON.parse(stored?.body ?? "{}").observedAt).toBe(timeAt(180));
});

test("a fault of one node does not affect another, and each recovers by itself", async () => {
  for (const name of ["n1", "n2"]) await world.send(name, nodeNamed(name, 0));
  world.take();
  const faulty = nodeNamed("n1", 60, { kubeletConfiguration: { maxPods: "many" } });
  expect(await world.send("n1", faulty)).toMatch(/^refused: .*maxPods/);
  expect(await world.send("n2", nodeNamed("n2", 60))).toBe(2);
  expect(await world.send("n1", nodeNamed("n1", 120))).toBe(2);
  expect(world.take()).toEqual([
    "nodes/n1/turns changes holding 400",
    "nodes/n1/turns whole 400",
    "nodes/n2/turns changes holding 200",
    "nodes/n1/turns whole 200",
  ]);
  world.loseHistory();
  for (const name of ["n1", "n2"]) expect(await world.send(name, nodeNamed(name, 180))).toBe(2);
  expect(world.take()).toEqual([
    "nodes/n1/turns changes holding 409",
    "nodes/n1/turns whole 200",
    "nodes/n2/turns changes holding 409",
    "nodes/n2/turns whole 200",
  ]);
});

test("a kubelet's stats are reduced to what decisions read, and invalid ones are sent as they are", async () => {
  const { stats } = realSnapshot() as { readonly stats: Json & { readonly node: Json } };
  for (const seconds of [0, 60]) {
    const memory = { time: timeAt(seconds), workingSetBytes: seconds };
    const printed = { ...stats, node: { ...stats.node, memory } };
    const snapshot = nodeNamed("n1", seconds, { stats: printed });
    await world.send("n1", snapshot);
    expect(JSON.stringify(printed).length / JSON.stringify(statsIn(world.text)).length).toBeGreaterThan(3);
    const id = value(await world.store.getNode("n1"))?.lastSnapshotId ?? "";
    const whole = decodeSnapshot(snapshot);
    expect(whole.ok && JSON.stringify(whole.value)).toBe(value(await world.store.getSnapshot(id))?.body);
  }
  for (const [wrong, at] of [
    [{ node: { nodeName: "other" } }, "stats.node.nodeName"],
    [{ ...stats, pods: 5 }, "stats.pods"],
    [{ node: null, pods: [{}] }, "stats.pods"],
  ] as const) {
    const reported = await world.send("n1", nodeNamed("n1", 120, { stats: wrong }));
    expect(reported).toContain(at);
  }
});

test("after restarts and lost answers sending continues from what the history has", async () => {
  await world.send("n1", nodeNamed("n1", 0));
  world.restartApi();
  await world.send("n1", nodeNamed("n1", 60));
  world.isAnswerLost = true;
  expect(await world.send("n1", nodeNamed("n1", 120))).toMatch(/^away: /);
  world.isAnswerLost = false;
  expect(await world.send("n1", nodeNamed("n1", 180))).toBe(2);
  world.restart();
  expect(await world.send("n1", nodeNamed("n1", 240))).toBe(2);
  world.turns.forget("n1");
  expect(await world.send("n1", nodeNamed("n1", 300))).toBe(2);
  expect(world.take()).toEqual([
    "nodes/n1/turns whole 200",
    ...Array(3).fill("nodes/n1/turns changes holding 200"),
    ...Array(2).fill("nodes/n1/turns whole 200"),
  ]);
});

test("to an API without turns snapshots are put and decided in a batch", async () => {
  world.hasTurns = false;
  const WHOLE = ["nodes/n1/snapshot 201", "batch 200"];
  expect(await world.send("n1", nodeNamed("n1", 0))).toBe(2);
  expect(await world.send("n1", nodeNamed("n1", 60))).toBe(2);
  expect(world.take()).toEqual(["nodes/n1/turns whole 404", ...WHOLE, ...WHOLE]);
  world.isAway = true;
  expect(await world.send("n1", nodeNamed("n1", 120))).toMatch(/^away: /);
  world.isAway = false;
  expect(await world.send("n1", nodeNamed("n1", 180))).toBe(2);
  expect(world.take()).toEqual(["nodes/n1/turns whole 404", ...WHOLE]);
  // the same after a while without a failed request
  world.hasTurns = true;
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(performance, "now").mockReturnValue(performance.now() + RETRY_TURNS_MS);
  expect(await world.send("n1", nodeNamed("n1", 240))).toBe(2);
  world.hasTurns = false;
  expect(await world.send("n1", nodeNamed("n1", 300))).toBe(2);
  expect(world.take()).toEqual(["nodes/n1/turns whole 200", "nodes/n1/turns changes holding 404", ...WHOLE]);
});

test("snapshots with pods without a uid are sent whole each time", async () => {
  const bare = { metadata: { name: "bare" }, spec: { containers: [{ name: "c" }] } };
  for (const seconds of [0, 60]) {
    const posted = nodeNamed("n1", seconds, { pods: { kind: "List", items: [...captured.pods, bare] } });
    // eviction is not decided, because an eviction has to name the pods
    expect(await world.send("n1", posted)).toBe(1);
  }
  expect(world.take()).toEqual(["nodes/n1/turns whole 200", "nodes/n1/turns whole 200"]);
});

test("over random changes of a fleet the history is the same as from whole posts", async () => {
  const met = new Met();
  for (const how of [" whole 200", " changes 200", " changes holding 200", " changes holding 409"])
    met.note(how, false);
  const whole = new World();
  whole.hasTurns = false;
  const names = ["n1", "n2", "n3"];
  const d = draws(3);
  const items = new Map(names.map((name) => [name, podsOn(name)]));
  for (let round = 1; round <= 60; round++) {
    const event = d.below(12);
    for (const one of [world, whole]) {
      one.seconds = 60 * round;
      if (event === 0) one.restart();
      if (event === 1) one.restartApi();
      if (event === 2) one.loseHistory();
    }
    for (const name of names) {
      let pods = items.get(name) as readonly Json[];
      if (d.chance(3))
        pods = [...pods, pod(`new-${round}`, { metadata: { uid: `u-${name}-${round}` }, spec: { nodeName: name } })];
      if (d.chance(3)) pods = pods.toSpliced(d.below(pods.length), 1);
      items.set(name, pods);
      const node = {
        ...captured.stats.node,
        nodeName: name,
        memory: { ...captured.stats.node.memory, availableBytes: d.pick([5e7, 4e9]) },
      };
      const posted = nodeNamed(name, 60 * round, {
        pods: { kind: "List", items: structuredClone(pods) },
        stats: { ...captured.stats, node },
      });
      const kinds = d.chance(4) ? [] : KINDS;
      expect(await world.send(name, posted, kinds), `round ${round}`).toBe(await whole.send(name, posted, kinds));
      for (const request of world.take()) met.note(request.replace(/^nodes\/n\d\/turns/, ""));
      const [own, other] = await Promise.all(
        [world, whole].map(async ({ store }) => value(await store.getNode(name))?.lastSnapshotId),
      );
      expect(own, `round ${round}`).toBe(other);
    }
  }
  expect(met.hardly(1)).toEqual([]);
  const history = async ({ store }: World) =>
    value(await store.listDecisions({ limit: 500 })).items.map((item) => ({ id: item.id, ...seriesOf(item) }));
  expect(await history(world)).toEqual(await history(whole));
});
