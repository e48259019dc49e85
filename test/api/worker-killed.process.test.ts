import { expect, test } from "vitest";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { type Dev, workerDev } from "../ui/worker-dev.ts";

const NODES = 4;
const ROUNDS = 3;
/** The number of turns after which the Worker is killed, while others are in progress. */
const TURNS = 60;

interface Turned {
  readonly snapshotId: string;
  readonly decisions: readonly {
    readonly id: string;
    readonly recorded: boolean;
    readonly again?: { readonly times: number };
  }[];
}
/** How often each decision was made according to the last answer, by id. */
type Acknowledged = Map<string, number>;

const headers = ({ token }: Dev) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });

/** Posts turns of one node until the Worker has exited; every fifth changes a decision. */
async function turns(dev: Dev, node: string, from: number, acknowledged: Acknowledged, onTurn: () => void) {
  for (let turn = from, base: string | undefined; ; turn++) {
    const cpu = `${100 + Math.floor(turn / 5)}m`;
    const kubeletConfiguration = { kubeReserved: { cpu } };
    const body =
      base === undefined
        ? { snapshot: exampleSnapshot(node, { sequence: turn, kubeletConfiguration }) }
        : { base, changes: { set: { sequence: turn, kubeletConfiguration } } };
    const response = await fetch(`${dev.url}/v1/nodes/${node}/turns`, {
      method: "POST",
      headers: headers(dev),
      body: JSON.stringify({ ...body, decisions: [{ kind: "allocatable" }] }),
    }).catch(() => null);
    const text = await response?.text().catch(() => null);
    if (response === null || typeof text !== "string") return turn;
    if (!response.ok) return turn;
    const answered = JSON.parse(text) as Turned;
    base = answered.snapshotId;
    for (const { id, recorded, again } of answered.decisions) {
      expect(recorded).toBe(true);
      acknowledged.set(id, Math.max(acknowledged.get(id) ?? 1, again?.times ?? 1));
    }
    onTurn();
  }
}

async function lost(dev: Dev, acknowledged: Acknowledged): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const [id, times] of acknowledged) {
    const response = await fetch(`${dev.url}/v1/decisions/${id}`, { headers: headers(dev) });
    const found = (await response.json()) as { readonly times?: number };
    if (!response.ok || (found.times ?? 1) < times) missing.push(`${id}: ${times} times, found ${found.times ?? 1}`);
  }
  return missing;
}

test("a Worker with Durable Objects that is killed amid turns keeps everything that it acknowledged", async () => {
  const folder = scratchFolder();
  const acknowledged: Acknowledged = new Map();
  let from = Array.from({ length: NODES }, () => 1);
  for (let round = 0; round < ROUNDS; round++) {
    const dev = await workerDev({ environment: "objects", folder });
    try {
      expect(await lost(dev, acknowledged)).toEqual([]);
      let left = TURNS;
      const onTurn = (): void => {
        if (--left === 0) void dev.close();
      };
      from = await Promise.all(from.map((turn, i) => turns(dev, `killed-${i}`, turn, acknowledged, onTurn)));
      expect(left).toBeLessThanOrEqual(0);
    } finally {
      await dev.close();
    }
  }
  const dev = await workerDev({ environment: "objects", folder });
  try {
    expect(acknowledged.size).toBeGreaterThan(ROUNDS * NODES);
    expect(await lost(dev, acknowledged)).toEqual([]);
  } finally {
    await dev.close();
  }
}, 600_000);
