import { readdirSync, readFileSync } from "node:fs";
import { realSnapshot } from "../decide/real-node.ts";
import { type Dev, workerDev } from "../ui/worker-dev.ts";
import { node110 } from "./memory.ts";
import { usedBy } from "./used.ts";

export interface WorkerFigure {
  readonly name: string;
  /** CPU time of all that runs in workerd for one request, the databases of the development server with it. */
  readonly cpuMs: number;
}

type Json = Record<string, unknown>;
const KINDS = ["cgroups", "allocatable"] as const;

/** A node's turns, one after the other. */
class Turns {
  readonly #dev: Dev;
  readonly #name: string;
  readonly #snapshot: Json;
  #base = "";
  #holds: readonly string[] = [];
  #turn = 0;

  constructor(dev: Dev, name: string, snapshot: Json) {
    this.#dev = dev;
    this.#name = name;
    const { assignments: _, pods, ...rest } = snapshot;
    const node = rest["node"] as Json;
    this.#snapshot = {
      ...rest,
      pods: (pods as { items?: unknown }).items ?? pods,
      node: { ...node, metadata: { ...(node["metadata"] as Json), name } },
    };
  }

  whole = (): Promise<void> => this.#take({ snapshot: this.#snapshot });
  quiet = (): Promise<void> => this.#take({ base: this.#base, changes: { set: { sequence: 1000 + this.#turn++ } } });
  /** Other stats, as in every turn of a real node. */
  measured = (): Promise<void> => {
    const turn = this.#turn++;
    const text = JSON.stringify(this.#snapshot["stats"]).replace(
      /"(workingSetBytes|usageNanoCores|rssBytes)":(\d+)/g,
      (_, name: string, value: string) => `"${name}":${Number(value) + turn * 4096}`,
    );
    return this.#take({ base: this.#base, changes: { set: { sequence: 1000 + turn, stats: JSON.parse(text) } } });
  };
  /** Another limit of one pod: decisions are written. */
  changed = (): Promise<void> => {
    const [pod] = this.#snapshot["pods"] as readonly Json[];
    const spec = pod?.["spec"] as Json & { readonly containers: readonly Json[] };
    const limits = { memory: `${100 + this.#turn++}Mi` };
    const containers = spec.containers.map((one) => ({ ...one, resources: { limits, requests: limits } }));
    const upsert = [{ ...pod, spec: { ...spec, containers } }];
    return this.#take({ base: this.#base, changes: { set: { sequence: 1000 + this.#turn++ }, pods: { upsert } } });
  };

  async #take(from: object): Promise<void> {
    const decisions = KINDS.map((kind, i) => ({ kind, explain: "off", holds: this.#holds[i] ?? null }));
    const answered = await fetch(`${this.#dev.url}/v1/nodes/${this.#name}/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.#dev.token}` },
      body: JSON.stringify({ ...from, decisions }),
    });
    const text = await answered.text();
    if (!answered.ok) throw new Error(text.slice(0, 400));
    const answer = JSON.parse(text) as { snapshotId: string; decisions: readonly { id: string; recorded: boolean }[] };
    if (!answer.decisions.every(({ recorded }) => recorded)) throw new Error(`not recorded: ${text.slice(0, 400)}`);
    this.#base = answer.snapshotId;
    this.#holds = answer.decisions.map(({ id }) => id);
  }
}

/** The processes of the development server in which workerd runs. */
function workerds({ pid }: Dev): readonly number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((one) => {
      try {
        const text = readFileSync(`/proc/${one}/stat`, "utf8");
        const [, , group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
        return text.includes("(workerd") && Number(group) === pid;
      } catch {
        return false;
      }
    });
}

async function measured(dev: Dev, times: number, work: () => Promise<unknown>): Promise<number> {
  const cpu = (): number => workerds(dev).reduce((sum, pid) => sum + usedBy(pid).allMs, 0);
  for (let i = 0; i < times / 4; i++) await work();
  const before = cpu();
  for (let i = 0; i < times; i++) await work();
  return (cpu() - before) / times;
}

/** The Worker with an object for each node, as `wrangler dev` runs it: turns of one node, one after the other. */
export async function benchWorker(): Promise<readonly WorkerFigure[]> {
  const dev = await workerDev({ environment: "objects" });
  try {
    const figures: WorkerFigure[] = [];
    const add = async (name: string, times: number, work: () => Promise<unknown>) =>
      figures.push({ name, cpuMs: await measured(dev, times, work) });
    await add("GET /healthz", 400, async () => (await fetch(`${dev.url}/healthz`)).text());
    for (const [pods, snapshot] of [
      [11, realSnapshot()],
      [110, node110()],
    ] as const) {
      const turns = new Turns(dev, `bench-${pods}`, snapshot as Json);
      await add(`${pods} pods: the whole snapshot again`, 40, turns.whole);
      await add(`${pods} pods: a turn in which nothing is another`, 400, turns.quiet);
      await add(`${pods} pods: a turn with other stats`, 400, turns.measured);
      await add(`${pods} pods: a turn with another limit of a pod`, 100, turns.changed);
    }
    return figures;
  } finally {
    await dev.close();
  }
}
