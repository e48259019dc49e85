import { hash } from "node:crypto";
import { join } from "node:path";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { DecisionAnswer, DecisionClient, Problem } from "../../actuator/core/interfaces.ts";
import type { SimApi } from "./api.ts";
import type { WatchedDisk } from "./pods-disk.ts";
import { counted, type Life, never } from "./pods-life.ts";

/** An answered `admission`, and what the daemon reported about it. */
export interface Asked {
  readonly uid: string;
  /** A hash of the whole question: a daemon that starts right after another's death asks the same question again. */
  readonly key: string;
  readonly answer: DecisionAnswer;
  readonly life: Life;
  /** The decision is persisted, or could not be persisted because the disk was full. */
  isSettled: boolean;
  /** In any case, the history will contain the decision. */
  isKept: boolean;
  reports: number;
}

/** The parts of a daemon's client. */
export interface ClientParts {
  readonly api: SimApi;
  readonly life: Life;
  readonly disk: WatchedDisk;
  readonly stateDir: string;
  readonly asked: Asked[];
  /** The kinds of questions whose daemon died before it received the API's answer. */
  readonly undelivered: string[];
  readonly onProblem: (problem: Problem) => void;
}

/** The kind in a request; the empty string for a report. */
async function kindIn(request: Request): Promise<string> {
  const { decisions } = (await request.json()) as { readonly decisions?: readonly { readonly kind: string }[] };
  return decisions?.[0]?.kind ?? /\/v1\/decisions\/(.*)$/.exec(request.url)?.[1] ?? "";
}

/** The real client, which records the admissions that it is asked for and their reports. */
export function watchedClient({
  api,
  life,
  disk,
  stateDir,
  asked,
  undelivered,
  onProblem,
}: ClientParts): DecisionClient {
  // a dead daemon neither sends requests nor receives responses
  const fetch = async (request: Request): Promise<Response> => {
    if (life.isOver) return never();
    const same = request.clone();
    const answer = await counted(() => api.fetch(request));
    if (!life.isOver) return answer;
    undelivered.push(await kindIn(same));
    return never();
  };
  const access = { url: "http://api.sim", token: undefined, timeoutMs: 1000, fetch };
  const memory = new FactsStore(stateDir, (message) => onProblem({ from: "memory", message }));
  const client = new ApiClient(access, Outbox.open(join(stateDir, "outbox.jsonl")), memory, onProblem);
  const ofAnswer = (answer: DecisionAnswer): Asked | undefined =>
    life.isOver ? undefined : asked.find((one) => one.answer === answer);
  return {
    decide: async (kind, snapshot, ask) => {
      const answer = await client.decide(kind, snapshot, ask);
      const { pod } = (ask ?? {}) as { readonly pod?: { readonly metadata: { readonly uid: string } } };
      if (kind !== "admission" || !answer.ok || pod === undefined) return answer;
      const key = hash("sha256", JSON.stringify([snapshot, ask]));
      const noted = { key, life, isSettled: false, isKept: false, reports: 0 };
      asked.push({ uid: pod.metadata.uid, answer: answer.value, ...noted });
      return answer;
    },
    commit: async (answer, isNews) => {
      await client.commit(answer, isNews);
      const one = ofAnswer(answer);
      if (one !== undefined) Object.assign(one, { isSettled: true, isKept: !disk.isFull });
    },
    report: async (report, answer) => {
      await client.report(report, answer);
      const one = ofAnswer(answer);
      if (one !== undefined) one.reports++;
    },
  };
}
