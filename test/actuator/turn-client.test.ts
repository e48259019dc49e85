import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { DecisionAnswer, Problem } from "../../actuator/core/interfaces.ts";
import type { Kind } from "../../api/model/decision.ts";
import { epochMs } from "../../api/model/units.ts";
import { seriesOf } from "../../db/rows.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { appOver } from "../api/serving.ts";
import { timeAt } from "../contract/gc-snapshots.ts";
import { value } from "../contract/store-rows.ts";
import { requesting } from "../kit/pods.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { type Draws, draws, Met } from "../properties/draws.ts";
import { snapshot as captured } from "./answered.ts";

vi.setConfig({ testTimeout: 120_000 });

type Json = Readonly<Record<string, unknown>>;
interface Exchange {
  readonly path: string;
  readonly sent: Json;
  readonly status: number;
  readonly answer: Json;
}

/**
 * The real API with a history in memory, and a daemon's client. A test can restart each, and cut the connection between
 * them.
 */
class World {
  readonly exchanges: Exchange[] = [];
  readonly problems: string[] = [];
  /** False: the API does not support turns. */
  hasTurns = true;
  /** Whether the answer to a request that has arrived is lost. */
  isAnswerLost = false;
  isAway = false;
  /** Changes an answer on its way to the client. */
  tamper: (answer: Json, path: string) => Json = (answer) => answer;
  /** The API's clock, in seconds. */
  seconds = 0;
  store = value(openNode({ file: ":memory:" }));
  client!: ApiClient;
  outbox!: Outbox;
  #app = this.#openApp();
  readonly #dir = scratchFolder(RAM_DISK);

  constructor() {
    this.restart();
  }

  #openApp() {
    return appOver({ store: this.store, now: () => epochMs(Date.parse(timeAt(this.seconds))) }).app;
  }
  /** Starts the daemon anew, with the same state directory. */
  restart(): void {
    const access = { url: "http://api.sim", token: undefined, timeoutMs: 20_000, fetch: this.#fetch };
    const memory = new FactsStore(this.#dir, (message) => this.problems.push(message));
    this.outbox = Outbox.open(join(this.#dir, "outbox.jsonl"));
    this.client = new ApiClient(access, this.outbox, memory, ({ message }: Problem) => this.problems.push(message));
  }
  /** Starts the API again: its memory of nodes is lost, its history is not. */
  restartApi(): void {
    this.#app = this.#openApp();
  }
  /** Replaces the history by another one. */
  loseHistory(): void {
    this.store = value(openNode({ file: ":memory:" }));
    this.restartApi();
  }

  readonly #fetch = async (request: Request): Promise<Response> => {
    if (this.isAway) throw new TypeError("fetch failed");
    const path = new URL(request.url).pathname;
    const sent = (await request.clone().json()) as Json;
    const isKnown = this.hasTurns || !path.endsWith("/turns");
    const response = isKnown
      ? await this.#app.fetch(request)
      : Response.json({ code: "not_found", detail: "there is no route" }, { status: 404 });
    const answer = this.tamper((await response.json()) as Json, path);
    this.exchanges.push({ path, sent, status: response.status, answer });
    if (this.isAnswerLost) throw new TypeError("fetch failed");
    return Response.json(answer, { status: response.status });
  };

  async decide(kind: Kind, snapshot: unknown, ask?: object): Promise<DecisionAnswer> {
    const answer = await this.client.decide(kind, snapshot, ask);
    if (!answer.ok) throw new Error(answer.error.message);
    await this.client.commit(answer.value);
    return answer.value;
  }
  /** The exchanges since the last call. */
  take = (): readonly Exchange[] => this.exchanges.splice(0);
}
const TURNS = "/v1/nodes/n1/turns";
/** Whether a request sent its snapshot whole or as changes, and whether it named decisions that the client holds. */
const reportOf = ({ path, sent, status }: Exchange): string => {
  const [{ holds = "" } = {}] = (sent["decisions"] ?? []) as { holds?: string }[];
  const how = "base" in sent ? "changes" : "whole";
  return `${path === TURNS ? "turn" : path} ${how}${holds === "" ? "" : " holding"} ${status}`;
};
const later = (seconds: number, over: object = {}) => ({ ...captured, observedAt: timeAt(seconds), ...over });
const withImage = (seconds: number, image: string) => {
  const [first, ...others] = captured.pods;
  return later(seconds, { pods: [{ ...first, metadata: { ...first.metadata, name: image } }, ...others] });
};
const contentOf = ({ decision, reasons, needs, next, verdict }: DecisionAnswer) =>
  JSON.parse(JSON.stringify({ decision, reasons, needs, next, verdict }));

describe("the daemon's client for turns", () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  const asWhole = async (kind: Kind, snapshot: unknown, ask?: object) => {
    const other = new World();
    other.hasTurns = false;
    return contentOf(await other.decide(kind, snapshot, ask));
  };

  test("sends a whole snapshot once, then changes only, and receives changes only", async () => {
    await world.decide("allocatable", later(0));
    const first = await world.decide("cgroups", later(0));
    expect(world.take().map(reportOf)).toEqual(["turn whole 200", "turn changes 200"]);
    const second = await world.decide("cgroups", withImage(10, "other"));
    const [exchange] = world.take() as [Exchange];
    expect(reportOf(exchange)).toBe("turn changes holding 200");
    expect(exchange.sent["changes"]).toEqual({
      set: { observedAt: timeAt(10) },
      pods: { upsert: [expect.objectContaining({ metadata: expect.objectContaining({ name: "other" }) })] },
    });
    expect(JSON.stringify(exchange.answer).length * 5).toBeLessThan(JSON.stringify(first).length);
    expect(contentOf(second)).toEqual(await asWhole("cgroups", withImage(10, "other")));
    expect(contentOf(second)).not.toEqual(contentOf(first));
    expect(world.problems).toEqual([]);
  });

  test("starts over with a whole snapshot after a restart of either side", async () => {
    await world.decide("cgroups", later(0));
    world.restart();
    await world.decide("cgroups", later(10));
    expect(world.take().map(reportOf)).toEqual(["turn whole 200", "turn whole 200"]);
    world.restartApi();
    const answer = await world.decide("cgroups", withImage(20, "a"));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 200"]);
    expect(contentOf(answer)).toEqual(await asWhole("cgroups", withImage(20, "a")));
    world.loseHistory();
    const after = await world.decide("cgroups", withImage(30, "b"));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 409", "turn whole 200"]);
    expect(contentOf(after)).toEqual(await asWhole("cgroups", withImage(30, "b")));
    await world.decide("cgroups", later(40));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 200"]);
    expect([world.problems, world.outbox.size]).toEqual([[], 0]);
  });

  test("continues from the last confirmed snapshot after a lost answer", async () => {
    await world.decide("cgroups", later(0));
    world.isAnswerLost = true;
    const lost = await world.decide("cgroups", withImage(10, "lost"));
    expect(lost.decidedBy).toBe("here");
    world.isAnswerLost = false;
    world.take();
    const answer = await world.decide("cgroups", withImage(20, "next"));
    expect(answer.decidedBy).toBe("api");
    expect(contentOf(answer)).toEqual(await asWhole("cgroups", withImage(20, "next")));
    // first the decision that waited for the API, then the turn
    expect(world.take().map(reportOf)).toEqual(["/v1/decisions/cgroups whole 200", "turn changes holding 200"]);
    expect(world.outbox.size).toBe(0);
  });

  test("posts whole snapshots to an API without turns, and detects turns after it was unreachable", async () => {
    world.hasTurns = false;
    await world.decide("cgroups", later(0));
    await world.decide("cgroups", later(10));
    const WHOLE = "/v1/decisions/cgroups whole 200";
    expect(world.take().map(reportOf)).toEqual(["turn whole 404", WHOLE, WHOLE]);
    world.hasTurns = true;
    await world.decide("cgroups", later(20));
    expect(world.take().map(reportOf)).toEqual([WHOLE]);
    world.isAway = true;
    expect((await world.decide("cgroups", later(30))).decidedBy).toBe("here");
    world.isAway = false;
    await world.decide("cgroups", later(40));
    expect(world.take().map(reportOf)).toEqual([WHOLE, "turn whole 200"]);
    // and an API that no longer supports turns
    world.hasTurns = false;
    await world.decide("cgroups", later(50));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 404", WHOLE]);
  });

  test("keeps the whole node's snapshot when another decision uses a part of it", async () => {
    await world.decide("cgroups", later(0));
    const { node, observedAt } = later(5) as Json;
    await world.decide("probe-guard", { node, observedAt }, { window: {}, pods: [] }).catch(() => {});
    world.take();
    await world.decide("cgroups", later(10));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 200"]);
  });

  test("reports a refusal like that of a whole post", async () => {
    const { node: _, ...nodeless } = later(0) as Json;
    const fault = async (one: World, snapshot: unknown) => {
      const refused = await one.client.decide("cgroups", snapshot);
      return refused.ok ? null : refused.error;
    };
    await world.decide("cgroups", later(0));
    const bare = { ...later(10), cgroup: undefined };
    const other = new World();
    other.hasTurns = false;
    const [own, whole] = [await fault(world, bare), await fault(other, bare)];
    expect(own?.from).toBe("decision");
    expect(world.take().map(reportOf)).toEqual(["turn whole 200", "turn changes holding 200"]);
    expect(own?.message.replace(/\S+ answered/, "answered")).toBe(whole?.message.replace(/\S+ answered/, "answered"));
    // without a node there are no turns
    await world.client.decide("cgroups", nodeless);
    expect(world.take().map(reportOf)).toEqual(["/v1/decisions/cgroups whole 200"]);
  });

  test("sends the whole snapshot when its changes are refused, and then reports the fault", async () => {
    await world.decide("cgroups", later(0));
    const faulty = later(10, { pods: [{ ...captured.pods[0], spec: { containers: [] } }, ...captured.pods.slice(1)] });
    const refused = await world.client.decide("cgroups", faulty);
    expect(refused.ok ? "" : refused.error.message).toMatch(/answered 400 invalid_input .*pods\[0\].spec.containers/);
    expect(world.take().map(reportOf)).toEqual(["turn whole 200", "turn changes holding 400", "turn whole 400"]);
    await world.decide("cgroups", later(20));
    expect(world.take().map(reportOf)).toEqual(["turn whole 200"]);
  });

  const replace = (place: string, replacement: unknown) => ({
    patch: [{ op: "replace", path: place, value: replacement }],
  });
  test.each<readonly [string, object]>([
    ["a patch that does not apply", replace("/decision/nothing/there", 1)],
    ["a patch that is none", { patch: [{ op: "test", path: "/decision", value: 1 }] }],
    ["a patch of something else than what it holds", { holds: "0".repeat(32) }],
    ["a patch that makes no decision of what it holds", replace("/decision", "nonsense")],
    [
      "a patch that ends a pod the node does not have",
      replace("/decision/cgroups/0/pod", { namespace: "a", name: "b", uid: "c" }),
    ],
  ])("requests the whole answer when it receives %s", async (_, over) => {
    await world.decide("cgroups", later(0));
    world.take();
    let times = 0;
    world.tamper = (answer) => {
      const [entry] = (answer["decisions"] ?? []) as readonly Json[];
      if (entry === undefined || !("holds" in entry)) return answer;
      times++;
      return { ...answer, decisions: [{ ...entry, ...over }] };
    };
    const answer = await world.decide("cgroups", withImage(10, "a"));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 200", "turn whole 200"]);
    expect([times, answer.decidedBy]).toEqual([1, "api"]);
    expect(contentOf(answer)).toEqual(await asWhole("cgroups", withImage(10, "a")));
    world.tamper = (one) => one;
    await world.decide("cgroups", later(20));
    expect(world.take().map(reportOf)).toEqual(["turn changes holding 200"]);
  });

  test("decides itself when a turn's whole answer is no decision for the node", async () => {
    world.tamper = (answer, path) =>
      path === TURNS ? { ...answer, decisions: [{ id: "x", verdict: "decided", decision: {} }] } : answer;
    const answer = await world.decide("cgroups", later(0));
    expect(answer.decidedBy).toBe("here");
    expect(world.problems).toEqual([
      expect.stringMatching(/\/turns answered what is no decision of this node: decision/),
    ]);
  });

  test.each<readonly [string, Json]>([
    ["something else", { status: "ok" }],
    ["two decisions", { snapshotId: "a", decisions: [{}, {}] }],
  ])("treats an API that answers %s to a turn as one without turns", async (_, answer) => {
    world.tamper = (own, path) => (path === TURNS ? answer : own);
    expect((await world.decide("cgroups", later(0))).decidedBy).toBe("api");
    expect((await world.decide("cgroups", later(10))).decidedBy).toBe("api");
    const WHOLE = "/v1/decisions/cgroups whole 200";
    expect(world.take().map(reportOf)).toEqual(["turn whole 200", WHOLE, WHOLE]);
  });
});

const KINDS = ["allocatable", "cgroups", "eviction", "admission", "memory"] as const;
/** The next snapshot of a node: one part or no part of it differs. */
function next(d: Draws, before: Json, seconds: number): Json {
  const now: Record<string, unknown> = { ...before, observedAt: timeAt(seconds), sequence: seconds };
  const pods = before["pods"] as readonly Json[];
  const at = d.below(pods.length);
  const pod = pods[at] as { readonly metadata: Json; readonly status?: Json };
  switch (d.below(7)) {
    case 0:
      now["pods"] = pods.toSpliced(at, 1);
      break;
    case 1:
      now["pods"] = [...pods, requesting(`new-${seconds}`, { cpu: `${1 + d.below(90)}m`, memory: "8Mi" })];
      break;
    case 2:
      now["pods"] = pods.with(at, { ...pod, status: { ...pod.status, phase: d.pick(["Running", "Succeeded"]) } });
      break;
    case 3:
      now["kubeletConfiguration"] = { ...(before["kubeletConfiguration"] as Json), maxPods: 50 + d.below(60) };
      break;
    case 4: {
      const { node, ...others } = before["stats"] as { readonly node: Json };
      const memory = { ...(node["memory"] as Json), availableBytes: d.pick([5e7, 9e7, 4e9]) };
      now["stats"] = { ...others, node: { ...node, memory } };
      break;
    }
    case 5:
      if (d.chance(2)) delete now["assignments"];
      else now["assignments"] = captured.assignments;
      break;
  }
  return now;
}

test("over random nodes, restarts and lost answers, turns give and record the same as whole posts", async () => {
  const met = new Met();
  for (const how of ["turn whole 200", "turn changes 200", "turn changes holding 200", "turn changes holding 409"])
    met.note(how, false);
  for (const how of ["patched", "same", "made again", "decided here", "evicts"]) met.note(how, false);
  for (let seed = 1; seed <= 7; seed++) {
    const d = draws(seed);
    const [turns, whole] = [new World(), new World()];
    whole.hasTurns = false;
    const worlds = [turns, whole];
    let snapshot: Json = later(0, { sequence: 0 });
    for (let step = 1; step <= 25; step++) {
      snapshot = next(d, snapshot, 10 * step);
      for (const world of worlds) world.seconds = 10 * step;
      const event = d.below(12);
      for (const world of worlds) {
        if (event === 0) world.restart();
        if (event === 1) world.restartApi();
        if (event === 2) world.loseHistory();
        world.isAnswerLost = event === 3;
      }
      for (const kind of KINDS.filter(() => d.chance(2))) {
        const ask = kind === "admission" ? { pod: requesting("in", { cpu: "10m" }) } : undefined;
        const [own, other] = [await turns.decide(kind, snapshot, ask), await whole.decide(kind, snapshot, ask)];
        const place = `seed ${seed}, step ${step}, ${kind}`;
        expect(contentOf(own), place).toEqual(contentOf(other));
        expect([own.id, own.decidedBy], place).toEqual([other.id, other.decidedBy]);
        met.note("decided here", own.decidedBy === "here");
        met.note("evicts", own.verdict === "evicts");
        for (const exchange of turns.take()) {
          met.note(reportOf(exchange));
          const [{ patch } = {}] = (exchange.answer["decisions"] ?? []) as { patch?: readonly unknown[] }[];
          if (patch !== undefined) met.note(patch.length === 0 ? "same" : "patched");
        }
      }
    }
    for (const world of worlds) {
      world.isAnswerLost = false;
      await world.decide("allocatable", later(1000));
      expect(world.outbox.size).toBe(0);
    }
    const [own, other] = await Promise.all(worlds.map(history));
    expect(own, `seed ${seed}`).toEqual(other);
    met.note(
      "made again",
      own?.some(({ times }) => times > 1),
    );
  }
  expect(met.hardly(2)).toEqual([]);
});
async function history({ store }: World) {
  const { items } = value(await store.listDecisions({ node: "n1", limit: 500 }));
  return items
    .map((item) => ({ id: item.id, kind: item.kind, snapshotId: item.snapshotId, ...seriesOf(item) }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
