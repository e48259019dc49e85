import { realSnapshot } from "../kit/real-node.ts";
import { changing, MEMORY_LIMIT, startApi, startBare } from "./api.ts";
import { load, type Template } from "./load.ts";
import { node110 } from "./node110.ts";
import { cpuMsOf, usedBy } from "./used.ts";

interface Api {
  readonly url: string;
  readonly token?: string;
}

type Json = Record<string, unknown>;
const KINDS = ["cgroups", "allocatable"] as const;

/** The turns of one node, one after the other. Each method throws if the answer is not the expected one. */
export class Turns {
  readonly #api: Api;
  readonly #name: string;
  readonly #snapshot: Json;
  #base = "";
  #holds: readonly string[] = [];
  #turn = 0;

  constructor(api: Api, name: string, snapshot: object) {
    this.#api = api;
    this.#name = name;
    const { assignments: _, pods, ...rest } = snapshot as Json;
    const all = { ...rest, pods: (pods as { items?: unknown }).items ?? pods };
    this.#snapshot = JSON.parse(JSON.stringify(all).replaceAll('"n1"', JSON.stringify(name))) as Json;
  }

  whole = (): Promise<void> => this.#take({ snapshot: this.#snapshot });
  /** The API refuses this turn after it has asked the object: the cost of the round trip to the object. */
  refused = async (): Promise<void> => {
    const answered = await this.#post({ base: "0".repeat(32) });
    if (answered.status !== 409) throw new Error(`a turn with an unknown base was answered ${answered.status}`);
    await answered.text();
  };
  /** Nothing changes but a counter. */
  quiet = (): Promise<void> => this.#take({ base: this.#base, changes: { set: { sequence: 1000 + this.#turn++ } } });
  /** The stats change, as in every turn of a real node. */
  measured = (): Promise<void> => {
    const turn = this.#turn++;
    const text = JSON.stringify(this.#snapshot["stats"]).replace(
      /"(workingSetBytes|usageNanoCores|rssBytes)":(\d+)/g,
      (_, name: string, value: string) => `"${name}":${Number(value) + turn * 4096}`,
    );
    return this.#take({ base: this.#base, changes: { set: { sequence: 1000 + turn, stats: JSON.parse(text) } } });
  };
  /** The status of one pod changes: a snapshot is written, and the decisions are the same. */
  restarted = (): Promise<void> => {
    const [pod] = this.#snapshot["pods"] as readonly Json[];
    const restarts = JSON.stringify(pod).replace(/"restartCount":\d+/, `"restartCount":${this.#turn++}`);
    const upsert = [JSON.parse(restarts)];
    return this.#take({ base: this.#base, changes: { set: { sequence: 1000 + this.#turn++ }, pods: { upsert } } });
  };
  /** The limit of one pod changes, so a decision is written. */
  changed = (): Promise<void> => {
    const pods = (this.#snapshot["pods"] as readonly Json[]).map((pod) => JSON.stringify(pod));
    const pod = pods.find((text) => MEMORY_LIMIT.test(text)) ?? "";
    const upsert = [JSON.parse(pod.replace(MEMORY_LIMIT, `$1"${100 + this.#turn++}Mi"`))];
    return this.#take({ base: this.#base, changes: { set: { sequence: 1000 + this.#turn++ }, pods: { upsert } } });
  };

  readonly #post = (body: object): Promise<Response> =>
    fetch(`${this.#api.url}/v1/nodes/${this.#name}/turns`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(this.#api.token && { authorization: `Bearer ${this.#api.token}` }),
      },
      body: JSON.stringify(body),
    });

  async #take(from: object): Promise<void> {
    const decisions = KINDS.map((kind, i) => ({ kind, explain: "off", holds: this.#holds[i] ?? null }));
    const answered = await this.#post({ ...from, decisions });
    const text = await answered.text();
    if (!answered.ok) throw new Error(text.slice(0, 400));
    const answer = JSON.parse(text) as { snapshotId: string; decisions: readonly { id: string; recorded: boolean }[] };
    if (!answer.decisions.every(({ recorded }) => recorded)) throw new Error(`not recorded: ${text.slice(0, 400)}`);
    this.#base = answer.snapshotId;
    this.#holds = answer.decisions.map(({ id }) => id);
  }
}

export interface TurnFigure {
  readonly name: string;
  /** CPU time of the API's process for one request on one connection, recording included. */
  readonly cpuMs: number;
  /** As a part of the whole post of the same node. */
  readonly ofPost: number;
  /** As a multiple of what a server takes that only reads and parses the whole post's body. */
  readonly ofBare: number;
}

const ROUND_MS = 4000;
const TIMES = 300;

/** Measures turns of one node beside posts of its whole snapshot, each after a warm-up. Takes about a minute. */
export async function benchTurns(): Promise<readonly TurnFigure[]> {
  const api = await startApi();
  const bare = await startBare();
  try {
    const figures: TurnFigure[] = [];
    for (const [pods, snapshot] of [
      [11, realSnapshot()],
      [110, node110()],
    ] as const) {
      const template = changing(snapshot);
      const bareMs = await posted(bare.pid, bare.port, template);
      const postMs = await posted(api.pid, api.port, template);
      const add = (name: string, cpuMs: number): void =>
        void figures.push({ name: `${pods} pods: ${name}`, cpuMs, ofPost: cpuMs / postMs, ofBare: cpuMs / bareMs });
      add("a whole post with a new limit of a pod", postMs);
      const turns = new Turns({ url: `http://127.0.0.1:${api.port}` }, `bench-${pods}`, snapshot);
      await turns.whole();
      for (const [name, turn] of [
        ["a turn without changes", turns.quiet],
        ["a turn with new stats", turns.measured],
        ["a turn with a new status of a pod", turns.restarted],
        ["a turn with a new limit of a pod", turns.changed],
      ] as const)
        add(name, await cpuMsOf(api.pid, TIMES, turn));
    }
    return figures;
  } finally {
    await api.stop();
    await bare.stop();
  }
}

async function posted(pid: number, port: number, template: Template): Promise<number> {
  await load(port, template, 1, ROUND_MS);
  const before = usedBy(pid).allMs;
  const { requests } = await load(port, template, 1, ROUND_MS);
  return (usedBy(pid).allMs - before) / requests;
}
