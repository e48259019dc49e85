import { neededStats } from "../../api/collector/snapshot-sender.ts";
import { realSnapshot } from "../kit/real-node.ts";

/**
 * The number of turns between two changes of a pod: a node has a turn every ten seconds, so a pod changes once a
 * minute.
 */
const TURNS_A_CHANGE = 6;
const KINDS = ["cgroups", "allocatable"] as const;

type Json = Record<string, unknown>;
interface Template {
  /** The whole snapshot, the stats and the pods as JSON texts. */
  readonly snapshot: string;
  readonly stats: string;
  readonly pods: readonly string[];
}

/**
 * The captured node as a collector sends it. Its names, uids and container ids contain six digits that differ for each
 * node.
 */
function template(): Template {
  const { pods, assignments: _, stats, ...rest } = realSnapshot() as Json & { pods: { items: Json[] } };
  const sent = { ...rest, stats: neededStats(stats), pods: pods.items };
  let text = JSON.stringify({ observedAt: "2026-11-21T06:24:51Z", sequence: 100_000_000, ...sent });
  for (const uid of new Set(text.match(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g)))
    text = text.replaceAll(uid, `${uid.slice(0, -6)}@@@@@@`);
  text = text.replace(/containerd:\/\/[0-9a-f]{6}/g, "containerd://@@@@@@").replaceAll('"n1"', '"node-@@@@@@"');
  const whole = JSON.parse(text) as Json & { readonly pods: readonly Json[] };
  return { snapshot: text, stats: JSON.stringify(whole["stats"]), pods: whole.pods.map((pod) => JSON.stringify(pod)) };
}
const TEMPLATE = template();

/** A simulated node: its stats change in each turn, and one of its pods changes once a minute. */
export class FleetNode {
  readonly name: string;
  readonly #digits: string;
  #turn: number;
  #base: string | null = null;
  readonly #holds = new Map<string, string>();

  constructor(index: number) {
    this.#digits = String(index).padStart(6, "0");
    this.name = `node-${this.#digits}`;
    // so that the pods of different nodes change in different turns
    this.#turn = index % TURNS_A_CHANGE;
  }

  get path(): string {
    return `/v1/nodes/${this.name}/turns`;
  }

  /** The body of the node's next turn. `isQuiet`: no pod changes. */
  turn(isQuiet: boolean): string {
    const turn = this.#turn++;
    const decisions = KINDS.map((kind) => ({ kind, explain: "off", holds: this.#holds.get(kind) ?? null }));
    if (this.#base === null) return `{"snapshot":${this.#whole(turn)},"decisions":${JSON.stringify(decisions)}}`;
    const pods = isQuiet || turn % TURNS_A_CHANGE !== 0 ? "" : `,"pods":{"upsert":[${this.#pod(turn)}]}`;
    const set = `"set":{"observedAt":"${timeOf(turn)}","sequence":${turn},"stats":${this.#stats(turn)}}`;
    return `{"base":"${this.#base}","changes":{${set}${pods}},"decisions":${JSON.stringify(decisions)}}`;
  }

  /**
   * Processes the answer to a turn. Throws if the answer is neither 409 nor a 200 in which all decisions were recorded.
   */
  took(status: number, text: string): void {
    if (status === 409) {
      this.#base = null;
      return;
    }
    const answer = JSON.parse(text) as {
      snapshotId: string;
      decisions: { kind: string; id: string; recorded: boolean }[];
    };
    if (status !== 200 || answer.decisions.some(({ recorded }) => !recorded))
      throw new Error(`${this.name} was answered ${status}: ${text.slice(0, 300)}`);
    this.#base = answer.snapshotId;
    for (const { kind, id } of answer.decisions) this.#holds.set(kind, id);
  }

  #own(text: string): string {
    return text.replaceAll("@@@@@@", this.#digits);
  }
  #whole(turn: number): string {
    const counted = TEMPLATE.snapshot.replace("100000000", String(turn)).replace("2026-11-21T06:24:51Z", timeOf(turn));
    return this.#own(counted.replace(TEMPLATE.stats, this.#stats(turn)));
  }
  #pod(turn: number): string {
    const pod = TEMPLATE.pods[Math.floor(turn / TURNS_A_CHANGE) % TEMPLATE.pods.length] as string;
    return this.#own(pod.replace(/"restartCount":\d+/, `"restartCount":${turn}`));
  }
  #stats(turn: number): string {
    return this.#own(
      TEMPLATE.stats.replace(
        /"(workingSetBytes|usageNanoCores|usageCoreNanoSeconds|rssBytes)":(\d+)/g,
        (_, name: string, value: string) => `"${name}":${Number(value) + turn * 4096}`,
      ),
    );
  }
}

const BEGIN = Date.parse("2026-11-21T06:24:51Z");
const timeOf = (turn: number): string => new Date(BEGIN + turn * 10_000).toISOString();
